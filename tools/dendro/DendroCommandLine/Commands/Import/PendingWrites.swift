import DendroEngine
import DendroStorage
import DendroTree
import Dispatch
import Synchronization

/// Writes on their way: a few at a time, so that reading, applying and the disk's work overlap and
/// memory stays bounded.
final class PendingWrites: Sendable {
  struct Summary {
    var count = 0
    var first: LogSequenceNumber?
    var last: LogSequenceNumber?

    var text: String {
      let writes = Format.count(count, "write")
      guard let first, let last else { return "nothing changed" }
      return first == last ? "\(writes), LSN \(first)" : "\(writes), LSN \(first) to \(last)"
    }
  }

  private struct State {
    var done = Summary()
    var error: EngineError?
  }

  private static let inFlight = 4
  private let state = Mutex(State())
  private let room = DispatchSemaphore(value: inFlight)

  var summary: Summary { state.withLock { $0.done } }

  func submit(_ write: Write, to engine: Engine) throws {
    room.wait()
    if let error = state.withLock({ $0.error }) {
      room.signal()
      throw error
    }
    engine.submit(Draft(write)) { [self] result in
      state.withLock { state in
        switch result {
        case .success(let lsn):
          guard let lsn else { break }
          state.done.count += 1
          state.done.first = state.done.first ?? lsn
          state.done.last = lsn
        case .failure(let error): state.error = state.error ?? error
        }
      }
      room.signal()
    }
  }

  /// Returns once all of them have their outcome.
  func wait() throws {
    for _ in 0..<Self.inFlight { room.wait() }
    for _ in 0..<Self.inFlight { room.signal() }
    if let error = state.withLock({ $0.error }) { throw error }
  }
}
