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
    guard case .page(let page) = node.content else { return nil }
    let unretained = Unmanaged.passUnretained(page)
    let isBranch = unretained._withUnsafeGuaranteedRef { page in
      let kind = page.unresolved.kind
      return kind == .leaf || kind == .inner
    }
    guard isBranch else { return nil }
    bits = UInt(bitPattern: unretained.toOpaque())
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
