import DendroPlatform

/// What some work took.
struct Cost {
  /// Wall-clock time.
  var seconds: Double
  /// CPU time of all threads of the process, in user mode and in the kernel. It depends on the other
  /// programs of a machine much less than wall-clock time does.
  var processorSeconds: Double

  /// CPU time of the process so far.
  fileprivate static func processorSeconds() -> Double {
    var time = timespec()
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time)
    return Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
  }
}

/// Runs `body` and measures it.
func measured<R>(_ body: () async throws -> R) async rethrows -> (R, Cost) {
  let start = ContinuousClock.now
  let processorStart = Cost.processorSeconds()
  let result = try await body()
  let cost = Cost(
    seconds: (ContinuousClock.now - start) / .seconds(1),
    processorSeconds: Cost.processorSeconds() - processorStart)
  return (result, cost)
}

/// Runs `body` and returns the seconds that it took.
func seconds(_ body: () async throws -> Void) async rethrows -> Double {
  try await measured(body).1.seconds
}
