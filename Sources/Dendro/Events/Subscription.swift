package import DendroTree
import Synchronization

/// A consumer that fetches the states of one place itself, whenever it is ready for the next one: what
/// an asynchronous sequence listens with.
///
/// It has its own lock, which may be taken under the hub's, and holds at most 64 states.
package final class Subscription: Sendable, Identifiable {
  /// What there is to fetch.
  package enum Item: Sendable {
    case state(Node)
    /// Nothing more will come.
    case end
  }

  package typealias Waiter = CheckedContinuation<Void, Never>

  package let path: Path
  /// The orders of the children there, shared with listeners and other subscriptions.
  let orders: OrderRegistry
  /// Whether the states in between count, not only the newest.
  private let keepsStates: Bool
  private let state = Mutex(State())

  private struct State {
    var backlog = Queue<Node>()
    var waiter: Waiter?
    /// Whether no state comes any more; those that are there still count.
    var isEnded = false
  }

  package init(path: Path, keepsStates: Bool, orders: OrderRegistry = OrderRegistry()) {
    self.path = path
    self.orders = orders
    self.keepsStates = keepsStates
  }

  /// Notes a new state. Past the limit all that wait become this one.
  ///
  /// `replaced` gets the states that no longer wait. The caller frees them once no lock is held, since
  /// freeing what no other state shares may take long.
  ///
  /// - Returns: the waiter to resume, once no lock is held.
  package func note(_ node: Node, replacing replaced: inout [Node]) -> Waiter? {
    state.withLock { state in
      if state.isEnded { return nil }
      if state.backlog.count >= (keepsStates ? SyncPoint.backlogLimit : 1) {
        state.backlog.removeAll(into: &replaced)
      }
      state.backlog.append(node)
      return state.waiter.take()
    }
  }

  /// Says that no state comes any more.
  ///
  /// - Parameter drops: whether those that wait are not wanted either.
  /// - Returns: the waiter to resume, once no lock is held.
  func end(droppingStates drops: Bool = false) -> Waiter? {
    let (waiter, dropped) = state.withLock { state -> (Waiter?, Queue<Node>) in
      state.isEnded = true
      var dropped = Queue<Node>()
      if drops { swap(&dropped, &state.backlog) }
      return (state.waiter.take(), dropped)
    }
    withExtendedLifetime(dropped) {}  // Freed here: a writer may wait for the lock.
    return waiter
  }

  /// The number of states that wait.
  package var backlogCount: Int { state.withLock { $0.backlog.count } }

  /// The next state, as soon as there is one. The end if the task is cancelled: then nothing more comes.
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

  /// - Returns: the waiter to resume at once: this one if there is something to fetch, else an earlier one.
  private func wait(_ waiter: Waiter) -> Waiter? {
    state.withLock { state in
      if state.isEnded || !state.backlog.isEmpty { return waiter }
      let before = state.waiter
      state.waiter = waiter
      return before
    }
  }
}
