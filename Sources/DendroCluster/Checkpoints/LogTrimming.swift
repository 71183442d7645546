import DendroStorage

/// Removes what no server needs behind a checkpoint that was just published: all checkpoints but the two newest, the parts of
/// uploads that were abandoned, and the log up to the older of the two checkpoints.
///
/// A server that is there and reads the log further back keeps it from there on, up to a limit. It is known by its counter,
/// which moves: the rows of servers that are gone stay.
struct LogTrimming {
  private let session: ClusterSession
  private let settings: ClusterSettings
  private let upload: [UInt8]
  /// The counters of the servers, and when they were.
  private let seen: [ServerID: Int64]
  private let start = ContinuousClock.now

  /// Longer than between two moves of a counter.
  private var watchDelay: Duration { settings.beatInterval * 3 }

  /// Begins to watch the servers.
  ///
  /// - Parameter upload: that which will be complete when the trimming runs.
  init(
    _ session: ClusterSession, _ settings: ClusterSettings, _ upload: [UInt8]
  ) throws(ClusterError) {
    self.session = session
    self.settings = settings
    self.upload = upload
    seen = try session.servers().mapValues { $0.row.counter }
  }

  /// - Parameter wait: waits for a time, or until the server stops.
  /// - Returns: up to where the log is removed; nil if there was nothing to remove.
  func run(wait: (Duration) -> Void) throws(ClusterError) -> LogSequenceNumber? {
    let checkpoints = try session.checkpoints()
    for checkpoint in checkpoints.dropFirst(2) { try session.remove(checkpoint) }
    while try session.removeParts(during: upload) {}
    guard checkpoints.count >= 2 else { return nil }
    let rest = start + watchDelay - .now
    if rest > .zero { wait(rest) }
    let end = try end(upTo: checkpoints[1].lsn)
    var last: LogSequenceNumber?
    while let trimmed = try session.trimLog(behind: last ?? .zero, upTo: end) { last = trimmed }
    return last
  }

  /// - Parameter lsn: of the checkpoint behind which the log stays.
  private func end(upTo lsn: LogSequenceNumber) throws(ClusterError) -> LogSequenceNumber {
    let servers = try session.servers().filter { id, server in seen[id] != server.row.counter }
    guard let slowest = servers.values.compactMap(\.lsn).min(), slowest < lsn,
      try session.logByteCount(behind: slowest, upTo: lsn, limit: settings.lagByteLimit)
        <= settings.lagByteLimit
    else { return lsn }
    // By the batch that ends there the server can prove that it has a copy of the log.
    return LogSequenceNumber(max(slowest.rawValue, 1) - 1)
  }
}
