import DendroPlatform
import Foundation

/// Measures what the calling thread does from its creation on. It is stopped on the same thread.
///
/// On a machine that other programs use as well, a thread is often ready and has no processor. The time of that is
/// left out of `undisturbedSeconds`; the time in which the thread waits for another one is not.
struct ThreadMeter {
  private let start = ContinuousClock.now
  private let processorStart = Self.processorSeconds()
  private let queueStart = Self.queueSeconds()

  struct Reading: Sendable {
    /// CPU time of the thread.
    let processorSeconds: Double
    /// Wall-clock time without that in which the thread was ready and had no processor.
    let undisturbedSeconds: Double
  }

  func stop() -> Reading {
    let seconds = (ContinuousClock.now - start) / .seconds(1)
    let processorSeconds = Self.processorSeconds() - processorStart
    // The system counts both with clocks that differ a little.
    return Reading(
      processorSeconds: processorSeconds,
      undisturbedSeconds: max(seconds - (Self.queueSeconds() - queueStart), processorSeconds))
  }

  private static func processorSeconds() -> Double {
    var time = timespec()
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
    return Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
  }

  /// How long the thread was ready and had no processor; 0 if the system does not count it.
  ///
  /// Linux counts nanoseconds of CPU time, of this time, and turns (Documentation/scheduler/sched-stats.rst).
  private static func queueSeconds() -> Double {
    guard let text = try? String(contentsOfFile: "/proc/thread-self/schedstat", encoding: .utf8)
    else { return 0 }
    let words = text.split(separator: " ")
    return words.count > 1 ? (Double(words[1]) ?? 0) / 1e9 : 0
  }
}
