extension Database {
  /// Suspends until the task is cancelled, or the database is closed elsewhere, and closes the database: what was
  /// admitted is on the disk when it returns. For a task that runs as long as an app or a service.
  ///
  /// - Throws: as `close()` does; nothing for the cancellation.
  public func run() async throws { try await close(afterSignals: []) }

  /// Suspends until the process gets one of the signals, the task is cancelled, or the database is closed elsewhere, and
  /// closes the database: what was admitted is on the disk when it returns.
  ///
  /// ```swift
  /// try await database.run(until: SIGTERM, SIGINT)
  /// ```
  ///
  /// From the call on, until the database is closed, the signals do nothing else to the process; then they do what they did
  /// before.
  ///
  /// - Throws: ``DatabaseError/Code/invalidArgument`` at once for what is no signal that can be caught; else as `close()`
  ///   does, and nothing for the cancellation.
  public func run(until signal: Int32, _ others: Int32...) async throws {
    try await close(afterSignals: [signal] + others)
  }

  private func close(afterSignals signals: [Int32]) async throws {
    let (ended, continuation) = AsyncStream.makeStream(of: Never.self)
    closing.notify { continuation.finish() }
    var awaited: [AwaitedSignal] = []
    for number in signals { awaited.append(try AwaitedSignal(number) { continuation.finish() }) }
    for await _ in ended {}
    try await close()
    withExtendedLifetime(awaited) {}
  }
}
