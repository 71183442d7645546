import DendroEngine
import DendroStorage
import DendroTree
import Synchronization

/// Collects what an engine has followed until it is printed.
final class FollowedCommits: CommitObserver {
  struct Followed: Sendable {
    var lsn: LogSequenceNumber
    /// Milliseconds since 1970; nil for the difference between two states of which the writes are not known.
    var time: Int64?
    var changes: [Change]
  }

  private let followed = Mutex<[Followed]>([])

  func committed(_ commit: borrowing Commit, root: borrowing Node) -> Bool {
    let next = Followed(
      lsn: commit.lsn, time: commit.isUndo ? nil : commit.time, changes: Array(commit.changes))
    followed.withLock { $0.append(next) }
    return false
  }

  func take() -> [Followed] {
    followed.withLock { followed in
      defer { followed = [] }
      return followed
    }
  }
}
