import DendroPlatform

/// What some work took.
struct Cost: Codable, Sendable {
  /// Wall-clock time.
  var seconds: Double
  /// CPU time of all threads of the process, in user mode and in the kernel. It depends on the other
  /// programs of a machine much less than wall-clock time does.
  var processorSeconds: Double

  /// Measures from its creation on.
  struct Meter {
    private let start = ContinuousClock.now
    private let processorStart = Cost.processorSeconds()

    func stop() -> Cost {
      Cost(
        seconds: (ContinuousClock.now - start) / .seconds(1),
        processorSeconds: Cost.processorSeconds() - processorStart)
    }
  }

  /// CPU time of the process so far.
  private static func processorSeconds() -> Double {
    var time = timespec()
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time)
    return Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
  }
}
