/// The address of the root page of a branch, of which no reference is counted.
///
/// Unsafe: what is read through it has to be kept alive, and unchanged, by an agreement of those who pass it on.
/// `HeadReaders` has one.
package struct BranchAddress: Equatable, Sendable {
  /// Not 0.
  package let bits: UInt

  /// - Parameter bits: of another address.
  package init(bits: UInt) { self.bits = bits }

  /// Makes the address of a node; nil unless the node is a branch whose root page is in memory.
  @inline(__always)
  package init?(of node: borrowing Node) {
    bits = node.rootPageBits
    // Read in a second step: the compiler counts a reference where a page is both taken out and read.
    guard bits != 0 else { return nil }
    let kind = access.kind
    guard kind == .leaf || kind == .inner else { return nil }
  }

  @inline(__always)
  private var access: PageAccess {
    let pointer = UnsafeRawPointer(bitPattern: bits).unsafelyUnwrapped
    return Unmanaged<Page>.fromOpaque(pointer)._withUnsafeGuaranteedRef { $0.unresolved }
  }

  /// The branch, to be read in place.
  package var view: NodeView { NodeView(branch: access) }

  /// The node at a path, which is not empty, below the branch.
  ///
  /// Not inlined, so that the reference to what it returns is counted before the caller lets go of the branch.
  ///
  /// - Complexity: O(depth · log children).
  @inline(never)
  package func node(at path: Path) -> Node {
    path.withStoredBytes { Pages.node(access, PathStep(stored: $0)) }
  }
}

extension Node {
  /// The bits of the address of the root page, of a box or of a stub; 0 where there is none.
  @inline(__always)
  fileprivate var rootPageBits: UInt {
    guard case .page(let page) = content else { return 0 }
    return UInt(bitPattern: Unmanaged.passUnretained(page).toOpaque())
  }
}
