import DendroTree
import Synchronization

/// A task that waits for a single event. It is resumed once: with the event, or with nothing.
final class SingleEventWait: Sendable {
  private let query: DatabaseQuery
  private let state = Mutex(State())

  private struct State {
    var continuation: CheckedContinuation<(DataSnapshot, String?), Never>?
    var handle: DatabaseHandle?
    var isCancelled = false
  }

  init(_ query: DatabaseQuery) { self.query = query }

  /// - Returns: false if the task is cancelled already.
  func begin(_ continuation: CheckedContinuation<(DataSnapshot, String?), Never>) -> Bool {
    let isCancelled = state.withLock { state in
      state.continuation = continuation
      return state.isCancelled
    }
    if isCancelled { giveNothing() }
    return !isCancelled
  }

  func listens(_ handle: DatabaseHandle) {
    let isCancelled = state.withLock { state in
      state.handle = handle
      return state.isCancelled
    }
    if isCancelled { query.removeObserver(withHandle: handle) }
  }

  func cancel() {
    let handle = state.withLock { state in
      state.isCancelled = true
      return state.handle
    }
    giveNothing()
    if let handle { query.removeObserver(withHandle: handle) }
  }

  func give(_ snapshot: DataSnapshot, _ previousKey: String?) {
    let waiting = state.withLock { state in
      defer { state.continuation = nil }
      return state.continuation
    }
    waiting?.resume(returning: (snapshot, previousKey))
  }

  func giveNothing() { give(DataSnapshot(.empty, at: query.ref), nil) }
}

/// What the listener's blocks hold: when they are freed without having been called, the task is resumed with
/// nothing.
final class SingleEventAnswer: Sendable {
  private let wait: SingleEventWait

  init(_ wait: SingleEventWait) { self.wait = wait }

  deinit { wait.giveNothing() }

  func give(_ snapshot: DataSnapshot, _ previousKey: String?) { wait.give(snapshot, previousKey) }

  func giveNothing() { wait.giveNothing() }
}
