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
  ///
  /// - Parameter node: another reference keeps its page during the call.
  @inline(__always)
  package init?(of node: borrowing Node) {
    bits = node.pageBits
    // Only now: if the page was read as it was taken out of the node, the compiler counted a reference to it.
    guard bits != 0 else { return nil }
    let kind = access.kind
    guard kind == .leaf || kind == .inner else { return nil }
  }

  @inline(__always)
  private var access: PageAccess {
    let pointer = UnsafeRawPointer(bitPattern: bits).unsafelyUnwrapped
    return Unmanaged<Page>.fromOpaque(pointer)._withUnsafeGuaranteedRef { $0.unresolved }
  }

  /// The branch with a reference of its own. It has no priority.
  package var node: Node {
    let pointer = UnsafeRawPointer(bitPattern: bits).unsafelyUnwrapped
    return Node(
      content: .page(Unmanaged<Page>.fromOpaque(pointer).takeUnretainedValue()), priority: nil)
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
  /// The bits of the address of its page, which may be a box or a stub; 0 if it has none.
  @inline(__always)
  fileprivate var pageBits: UInt {
    guard case .page(let page) = content else { return 0 }
    return UInt(bitPattern: Unmanaged.passUnretained(page).toOpaque())
  }
}
