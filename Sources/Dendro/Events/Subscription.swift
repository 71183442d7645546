package import DendroTree
import Synchronization

/// The states of one path that wait for an asynchronous iterator, which fetches one when it is ready.
///
/// The hub notes new states under its lock; the iterator's task takes them. It has its own lock, which may
/// be taken under the hub's, and holds at most 64 states.
package final class Subscription: Sendable, Identifiable {
  package enum Item: Sendable {
    case state(Node)
    /// No state follows.
    case end
  }

  package typealias Waiter = CheckedContinuation<Void, Never>

  package let path: Path
  /// The sort orders of the path's children, shared with its listeners and other subscriptions.
  let orders: OrderRegistry
  /// Whether states are kept one after the other, as child events need it, or only the newest.
  private let keepsStates: Bool
  private let state = Mutex(State())

  private struct State {
    var backlog = Queue<Node>()
    var waiter: Waiter?
    /// Whether no new state is noted; those of the backlog can still be taken.
    var isEnded = false
    /// Why it has ended, if the database goes on.
    var failure: DatabaseError?
  }

  /// What a remote knows it by; nil if it does not listen to a server's data.
  let remoteID: UInt?

  package init(
    path: Path, keepsStates: Bool, orders: OrderRegistry = OrderRegistry(), remoteID: UInt? = nil
  ) {
    self.path = path
    self.remoteID = remoteID
    self.orders = orders
    self.keepsStates = keepsStates
  }

  /// Notes a new state. If the backlog is full, the state replaces all that wait.
  ///
  /// `replaced` gets the replaced states. The caller frees them once it holds no lock, since freeing pages
  /// that no other state shares may take long.
  ///
  /// - Parameter isComplete: whether that is all there is. What is not is passed over where only whole states are wanted.
  /// - Returns: the waiter to resume, once the caller holds no lock.
  package func note(
    _ node: Node, isComplete: Bool = true, replacing replaced: inout [Node]
  ) -> Waiter? {
    state.withLock { state in
      if state.isEnded || !isComplete && !keepsStates { return nil }
      if state.backlog.count >= (keepsStates ? SyncPoint.backlogLimit : 1) {
        state.backlog.removeAll(into: &replaced)
      }
      state.backlog.append(node)
      return state.waiter.take()
    }
  }

  /// Ends the subscription: no new state is noted.
  ///
  /// - Parameter drops: whether the states that wait are dropped too.
  /// - Returns: the waiter to resume, once the caller holds no lock.
  func end(droppingStates drops: Bool = false) -> Waiter? {
    let (waiter, dropped) = state.withLock { state -> (Waiter?, Queue<Node>) in
      state.isEnded = true
      var dropped = Queue<Node>()
      if drops { swap(&dropped, &state.backlog) }
      return (state.waiter.take(), dropped)
    }
    withExtendedLifetime(dropped) {}  // Freed here, since a writer may wait for the lock.
    return waiter
  }

  /// Ends it with an error, once the states that wait were taken.
  ///
  /// - Returns: as `end()`.
  func fail(_ error: DatabaseError) -> Waiter? {
    state.withLock { $0.failure = error }
    return end()
  }

  /// Why it has ended, if the database goes on.
  var failure: DatabaseError? { state.withLock { $0.failure } }

  /// The number of states that wait.
  package var backlogCount: Int { state.withLock { $0.backlog.count } }

  /// Waits for the next state. Cancelling the task ends the subscription.
  func next(isolation: isolated (any Actor)? = #isolation) async -> Item {
    while true {
      if Task.isCancelled {
        _ = end(droppingStates: true)
        return .end
      }
      if let item = takeItem() { return item }
      await withTaskCancellationHandler {
        await withCheckedContinuation { (waiter: Waiter) in
          if let early = wait(waiter) { early.resume() }
        }
      } onCancel: {
        end(droppingStates: true)?.resume()
      }
    }
  }

  private func takeItem() -> Item? {
    state.withLock { state in
      state.backlog.popFirst().map(Item.state) ?? (state.isEnded ? .end : nil)
    }
  }

  /// Stores the waiter until there is something to fetch.
  ///
  /// - Returns: the waiter to resume at once: this one if there is something to fetch already, else the one
  ///   that it replaces.
  private func wait(_ waiter: Waiter) -> Waiter? {
    state.withLock { state in
      if state.isEnded || !state.backlog.isEmpty { return waiter }
      let before = state.waiter
      state.waiter = waiter
      return before
    }
  }
}
