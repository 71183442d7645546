import DendroTree
import Synchronization

/// Why pages could not be read by calls that cannot throw, for the reading that made those calls.
///
/// A reading calls them on its own thread. So it gets the failures of that thread since it began, and neither those of
/// other threads nor, once it has ended, those of readings within it. If nothing ever failed, it costs two looks
/// at a number.
final class ReadingFailures: Sendable {
  fileprivate struct Failure {
    let number: UInt64
    let failure: PageFailure
  }

  /// How many calls have failed.
  private let count = Atomic<UInt64>(0)
  private let lastOfThreads = Mutex<[UInt: Failure]>([:])

  /// A reading that has begun, on this thread.
  struct Reading {
    fileprivate let count: UInt64
    /// The last failure of the thread before, which may be that of a reading around this one.
    fileprivate let earlier: Failure?
  }

  func begin() -> Reading {
    let count = count.load(ordering: .acquiring)
    let thread = BlockingExecutor.currentThreadID
    return Reading(count: count, earlier: count == 0 ? nil : lastOfThreads.withLock { $0[thread] })
  }

  /// Ends a reading, on the thread on which it began.
  ///
  /// - Returns: its last failure; nil if it had none.
  func end(_ reading: Reading) -> PageFailure? {
    guard let failure = failure(since: reading.count) else { return nil }
    let thread = BlockingExecutor.currentThreadID
    lastOfThreads.withLock { $0[thread] = reading.earlier }
    return failure
  }

  /// How many calls have failed until now, for `failure(since:)`.
  var mark: UInt64 { count.load(ordering: .acquiring) }

  /// The last failure of this thread since `mark` was read; nil if there was none.
  func failure(since mark: UInt64) -> PageFailure? {
    if count.load(ordering: .acquiring) == mark { return nil }
    let thread = BlockingExecutor.currentThreadID
    guard let last = lastOfThreads.withLock({ $0[thread] }), last.number > mark else { return nil }
    return last.failure
  }

  /// Notes a failure of this thread.
  func add(_ failure: PageFailure) {
    let thread = BlockingExecutor.currentThreadID
    lastOfThreads.withLock { failures in
      let number = count.wrappingAdd(1, ordering: .releasing).newValue
      failures[thread] = Failure(number: number, failure: failure)
    }
  }
}
