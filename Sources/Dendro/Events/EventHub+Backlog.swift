import DendroTree
import Synchronization

/// How much waits to be delivered at one moment.
package struct EventBacklog: Sendable {
  /// States that wait at all sync points and subscriptions; each of these keeps at most 64.
  package fileprivate(set) var stateCount = 0
  /// Sync points and subscriptions.
  package fileprivate(set) var consumerCount = 0
  /// Pieces of work that wait for the callback queue: one for each state of a sync point, for the first
  /// events of each registration, and for each completion.
  package fileprivate(set) var workCount = 0
}

extension Database {
  /// Counts what waits for listeners and asynchronous iterators. For tests.
  ///
  /// - Complexity: O(sync points and subscriptions).
  package var eventBacklog: EventBacklog {
    hub.state.withLock { state in
      var backlog = EventBacklog()
      for tree in [state.data, state.info] {
        tree.forEachAffected(by: .root, root: .empty) { place, _, _ in
          guard let syncPoint = place.syncPoint else { return }
          backlog.consumerCount += 1
          backlog.stateCount += syncPoint.backlogCount
        }
      }
      for subscription in state.subscriptions.values {
        backlog.consumerCount += 1
        backlog.stateCount += subscription.backlogCount
      }
      backlog.workCount = state.work.count
      return backlog
    }
  }
}
