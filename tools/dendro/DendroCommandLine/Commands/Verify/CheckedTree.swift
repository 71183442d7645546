import DendroEngine
import DendroTree
import Dispatch
import Synchronization

/// What whole trees say of themselves.
enum CheckedTree {
  /// The content hash of the data, and the first rule that a tree breaks, each found on a thread of its own.
  static func check(_ roots: TreeRoots) -> (hash: UInt64, violation: InvariantViolation?) {
    let result = Mutex<(hash: UInt64, violation: InvariantViolation?)>((0, nil))
    DispatchQueue.concurrentPerform(iterations: 2) { part in
      if part == 0 {
        let hash = CheckpointCoding.contentHash(of: roots.data)
        result.withLock { $0.hash = hash }
      } else {
        do throws(InvariantViolation) {
          try roots.data.checkInvariants()
          try roots.system.checkInvariants()
        } catch {
          result.withLock { $0.violation = error }
        }
      }
    }
    return result.withLock { $0 }
  }
}
