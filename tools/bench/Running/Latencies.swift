/// How long each of many calls took, which several callers make.
///
/// Each call has a place of its own, hence `@unchecked Sendable`.
final class Latencies: @unchecked Sendable {
  private let seconds: UnsafeMutableBufferPointer<Double>

  init(_ count: Int) {
    seconds = .allocate(capacity: count)
    seconds.initialize(repeating: 0)
  }

  deinit { seconds.deallocate() }

  var all: [Double] { Array(seconds) }

  func record(_ index: Int, since start: ContinuousClock.Instant) {
    seconds[index] = (ContinuousClock.now - start) / .seconds(1)
  }

  /// Calls `body` with the number of each call, from so many threads; a single caller is this thread.
  func inThreads(_ callerCount: Int, _ body: @escaping @Sendable (Int) throws -> Void) throws {
    guard callerCount > 1 else {
      for index in seconds.indices {
        let start = ContinuousClock.now
        try body(index)
        record(index, since: start)
      }
      return
    }
    try runInThreads(callerCount) { [self] caller in
      for index in stride(from: caller, to: seconds.count, by: callerCount) {
        let start = ContinuousClock.now
        try body(index)
        record(index, since: start)
      }
    }
  }

  /// Calls `body` with the number of each call, from so many tasks.
  func inTasks(
    _ callerCount: Int, _ body: @escaping @Sendable (Int) async throws -> Void
  ) async throws {
    try await withThrowingTaskGroup(of: Void.self) { group in
      for caller in 0..<callerCount {
        group.addTask { [self] in
          for index in stride(from: caller, to: seconds.count, by: callerCount) {
            let start = ContinuousClock.now
            try await body(index)
            record(index, since: start)
          }
        }
      }
      try await group.waitForAll()
    }
  }
}
