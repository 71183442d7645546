import DendroStorage
import Synchronization

/// Holds completions back until it is opened, and keeps their order.
///
/// For a transaction whose block has written: a caller that learns how the transaction has ended can read what the block
/// has written, and a close that is requested then comes after it.
final class CompletionGate: Sendable {
  /// Nil once the gate is open.
  private let waiting = Mutex<[@Sendable () -> Void]?>([])

  /// A completion that calls `completion` as soon as the gate is open.
  func holding(_ completion: @escaping Completion) -> Completion {
    { result in
      let isOpen = self.waiting.withLock { waiting in
        waiting?.append { completion(result) }
        return waiting == nil
      }
      if isOpen { completion(result) }
    }
  }

  /// Calls what was held back on the calling thread, and holds nothing back from then on. Call once.
  func open() {
    while let calls = takeWaiting() {
      for call in calls { call() }
    }
  }

  /// Opens the gate if nothing waits: a completion that comes during the calls waits for those before it.
  private func takeWaiting() -> [@Sendable () -> Void]? {
    waiting.withLock { waiting in
      let calls = waiting ?? []
      waiting = calls.isEmpty ? nil : []
      return waiting == nil ? nil : calls
    }
  }
}
