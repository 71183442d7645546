import CDendroProcessor
import DendroTree
import Synchronization

/// What a writer does, under the admission lock.
extension HeadReaders {
  /// How often a writer looks whether the readers that it has met have ended: about as long as one of them takes to go
  /// down to a leaf, and less than the copies take that it makes otherwise.
  private static let waitCount = 60

  /// Takes the tree back from new readers. After that no one reads it, or there is a second reference to its root
  /// page: the caller may change every page of it to which there is one reference only, and all pages above as well.
  ///
  /// Pages that the caller has looked at before have to be looked at again.
  ///
  /// - Parameters:
  ///   - branch: the root page of the head, to which the caller keeps a reference until the change; nil if the head is no
  ///     branch in memory.
  ///   - pause: between two looks whether readers have ended.
  /// - Returns: whether the tree is kept for readers.
  @inline(__always)
  @discardableResult
  func withdraw(_ branch: BranchAddress?, pause: () -> Void = { dendro_pause() }) -> Bool {
    // No one else writes this word. While pages are partial nothing is published, but this tree may have been, earlier.
    let bits = published.pointee.word.load(ordering: .relaxed)
    if !Unpublished.contains(bits) {
      assert(bits == branch?.bits, "what is published is the head")
      published.pointee.word.store(Unpublished.changing, ordering: .sequentiallyConsistent)
    }
    guard let branch, areReading(branch) else { return false }
    return keepUnlessEnded(branch, pause)
  }

  /// Lends a tree to readers again.
  ///
  /// - Parameter branch: the root page of the head; nil if the head has to be asked for under the lock.
  @inline(__always)
  func publish(_ branch: BranchAddress?) {
    published.pointee.word.store(branch?.bits ?? Unpublished.locked, ordering: .releasing)
  }

  /// Whether the branch is in a slot. Its address is not published.
  @inline(__always)
  func areReading(_ branch: BranchAddress) -> Bool {
    var slot = 0
    while slot < slotCount {
      if line(ofSlot: slot).pointee.word.load(ordering: .sequentiallyConsistent) == branch.bits {
        return true
      }
      slot &+= 1
    }
    return false
  }

  @inline(never)
  private func keepUnlessEnded(_ branch: BranchAddress, _ pause: () -> Void) -> Bool {
    if waiting.pointee.isDue() {
      for _ in 0..<Self.waitCount {
        pause()
        if !areReading(branch) {
          waiting.pointee.succeed()
          return false
        }
      }
      waiting.pointee.fail()
    }
    retired.withLock {
      $0.append(branch.node)
      hasRetired = true
    }
    // A reader that has ended or given up before it could see that something is retired frees nothing.
    if areReading(branch) { return true }
    forget(branch)
    return false
  }

  // MARK: Retired trees

  /// Whether trees are kept for their readers.
  @inline(__always)
  var hasRetired: Bool {
    get { retiredAreThere.pointee.word.load(ordering: .sequentiallyConsistent) != 0 }
    set { retiredAreThere.pointee.word.store(newValue ? 1 : 0, ordering: .sequentiallyConsistent) }
  }

  /// Keeps a tree no longer, to which the head has a reference: it has not changed, or is the head again.
  @inline(never)
  func forget(_ branch: BranchAddress) {
    retired.withLock { trees in
      trees.removeAll { BranchAddress(of: $0) == branch }
      hasRetired = !trees.isEmpty
    }
  }

  /// Frees the retired trees that are not read any more.
  @inline(never)
  func freeUnread() {
    let unread = retired.withLock { trees in
      let firstUnread = trees.partition { !isRead($0) }
      defer {
        trees.removeSubrange(firstUnread...)
        hasRetired = !trees.isEmpty
      }
      return Array(trees[firstUnread...])
    }
    // Without the lock: it may be much.
    withExtendedLifetime(unread) {}
  }

  private func isRead(_ tree: Node) -> Bool { BranchAddress(of: tree).map(areReading) ?? false }
}
