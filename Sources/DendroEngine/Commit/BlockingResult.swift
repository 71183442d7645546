import DendroStorage
import Dispatch
import Synchronization

/// A result that threads wait for and another one, mostly the commit thread, sets: once, and however many wait,
/// one call of the system wakes them.
final class BlockingResult: @unchecked Sendable {
  // Unchecked: `value` is written once, before `isSet` says so, and read only after that. The group is what
  // threads sleep on; it says nothing about memory.
  private var value: Result<LogSequenceNumber?, EngineError> = .success(nil)
  private let isSet = Atomic<Bool>(false)
  /// Left once the result is set.
  private let group = DispatchGroup()

  init() { group.enter() }

  /// Sets the result. Call once, even if no thread waits.
  func set(_ value: Result<LogSequenceNumber?, EngineError>) {
    self.value = value
    isSet.store(true, ordering: .releasing)
    group.leave()
  }

  /// Waits for the result. Any number of threads may.
  func get() throws(EngineError) -> LogSequenceNumber? {
    while !isSet.load(ordering: .acquiring) { group.wait() }
    return try value.get()
  }
}
