import Synchronization

@testable import DendroEngine
@testable import DendroStorage
@testable import DendroTree

/// What an observer of commits has seen: their LSNs, the tree made from their changes, and failures.
final class CommitLog: CommitObserver {
  private struct State {
    var root: Node
    var lsns: [UInt64] = []
    var differenceCount = 0
    var failures: [EngineError] = []
  }

  private let state: Mutex<State>

  init(_ root: Node) { state = Mutex(State(root: root)) }

  var lsns: [UInt64] { state.withLock { $0.lsns } }
  var root: Node { state.withLock { $0.root } }
  var differenceCount: Int { state.withLock { $0.differenceCount } }
  var failures: [EngineError] { state.withLock { $0.failures } }

  func committed(_ commit: borrowing Commit, root: borrowing Node) -> Bool {
    let (lsn, changes, isDifference) = (commit.lsn.rawValue, commit.changes, commit.isUndo)
    state.withLock { state in
      for change in changes { state.root.graft(change.new, at: change.path) }
      if isDifference { state.differenceCount += 1 } else { state.lsns.append(lsn) }
    }
    return false
  }

  func failed(_ error: EngineError) { state.withLock { $0.failures.append(error) } }
}
