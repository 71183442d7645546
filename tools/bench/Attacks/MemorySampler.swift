/// Looks at the memory of a server every 20 ms.
struct MemorySampler {
  private let byteCounts = Samples()
  private let work: RepeatedWork

  init(_ server: ServeProcess) {
    work = RepeatedWork(pause: 0.02) { [byteCounts, process = server.processID] in
      byteCounts.append(Double(ServeProcess.residentByteCount(of: process)))
    }
  }

  /// - Returns: the most bytes that were seen.
  func stop() throws -> Double {
    try work.stop()
    return byteCounts.all.max() ?? 0
  }
}
