import DendroStorage
import DendroTree

/// Reads the tree from a directory: loads the newest readable checkpoint and replays the log after it.
///
/// It runs on the thread that opens, and changes no file. `Result.openLog` then repairs a torn tail; a
/// read-only opening does not call that.
struct Recovery {
  let directory: DatabaseDirectory
  /// Whether all pages of the checkpoint are read at once.
  let readsAll: Bool
  let progress: (@Sendable (RecoveryProgress) -> Void)?
  /// The only location that is wanted; nil for the whole tree.
  var location: ReplayLocation?
  /// The errors of the checkpoints that cannot be read, where the caller has read all of them. No tree is made
  /// then: neither are checkpoints loaded nor writes applied.
  var knownErrors: [LogSequenceNumber: StorageError]?

  struct Result {
    var root = Node.empty
    /// The second root, all of it.
    var system = Node.empty
    /// Where pages of the tree are read from that are still in the checkpoint; nil where all were read.
    var pages: CheckpointPages?
    var lastLSN = LogSequenceNumber.zero
    var lastTime: Int64 = 0
    var databaseID: DatabaseID?
    var checkpoint: CheckpointPlace?
    /// The checksum that binds the checkpoint to its log.
    fileprivate var logChecksum: UInt32?
    /// Checkpoints that could not be read, or are not of this log.
    var unreadable: Set<LogSequenceNumber> = []
    /// Those of these that belong to another database, and prove nothing.
    fileprivate var foreign: Set<LogSequenceNumber> = []
    /// The error of the newest of `unreadable`.
    fileprivate var firstError: StorageError?
    /// Bytes of log after the checkpoint.
    var replayedLogByteCount: UInt64 = 0
    /// Nil where there is no log yet: a new database.
    var end: LogEnd?
    var report = RecoveryReport()
  }

  /// Which checkpoint, and how large its file is.
  struct CheckpointPlace {
    var lsn: LogSequenceNumber
    var byteCount: UInt64
  }

  mutating func run() throws(StorageError) -> Result {
    var result = Result()
    let contents = try directory.contents()
    result.report.foreignFiles = contents.foreign
    guard !contents.segments.isEmpty || !contents.checkpoints.isEmpty else {
      guard !directory.mode.isReadOnly else { throw .notFound(path: directory.path) }
      result.report.created = true
      return result
    }
    try directory.identify()
    while true {
      try loadCheckpoint(contents, into: &result)
      do throws(StorageError) {
        try replay(contents, into: &result)
        break
      } catch {
        // A checkpoint of another log is passed over, like one that cannot be read.
        guard let lsn = result.checkpoint?.lsn,
          error.isDamage(of: directory.path(ofCheckpoint: lsn))
        else { throw error }
        passOver(lsn, error, &result)
        result.root = .empty
        result.system = .empty
        result.pages = nil
        result.lastLSN = .zero
        result.lastTime = 0
        result.databaseID = nil
        result.checkpoint = nil
      }
    }
    result.report.lastLSN = result.lastLSN
    result.report.checkpointLSN = result.checkpoint?.lsn
    result.report.segmentCount = contents.segments.count
    return result
  }

  /// Loads the newest checkpoint that can be read. Retention keeps two, and the log since the older one.
  ///
  /// - Throws: where the system lets no file be read: that says nothing about the checkpoint.
  private func loadCheckpoint(_ contents: DatabaseDirectory.Contents, into result: inout Result)
    throws(StorageError)
  {
    for lsn in contents.checkpoints.sorted(by: >) where !result.unreadable.contains(lsn) {
      do throws(StorageError) {
        let reader = try CheckpointReader.open(directory, lsn: lsn)
        // First, since the file is closed once all pages of the data are read.
        let system =
          knownErrors == nil && location == nil ? try CheckpointCoding.system(reader) : nil
        var source: CheckpointPages?
        if let knownErrors {
          if let error = knownErrors[lsn] { throw error }
        } else if readsAll || reader.header.format.version == 0 {
          result.root = try CheckpointCoding.decode(reader, progress: progress)
        } else {
          let pages = CheckpointPages(reader)
          result.root = try pages.tree()
          source = pages.isPartial ? pages : nil
        }
        result.system = system ?? .empty
        result.pages = source
        result.lastLSN = reader.lsn
        result.lastTime = reader.time
        result.databaseID = reader.databaseID
        result.logChecksum = reader.header.logChecksum
        result.checkpoint = CheckpointPlace(lsn: lsn, byteCount: reader.byteCount)
        return
      } catch {
        if error.isOfNewerVersion { throw error }
        if error.isOfProcess { throw error }
        if try directory.isForeign(checkpoint: lsn) { result.foreign.insert(lsn) }
        passOver(lsn, error, &result)
      }
    }
    // Without a checkpoint the log has to begin with the first write.
    if let firstError = result.firstError,
      contents.segments.map(\.firstLSN).min() != LogSequenceNumber(1)
    {
      throw firstError
    }
  }

  private func passOver(_ lsn: LogSequenceNumber, _ error: StorageError, _ result: inout Result) {
    result.firstError = result.firstError ?? error
    result.unreadable.insert(lsn)
    result.report.unreadableCheckpoints.append(error.description)
  }

  private func logByteCount(
    _ contents: DatabaseDirectory.Contents, after checkpoint: LogSequenceNumber
  ) throws(StorageError) -> UInt64 {
    let start = contents.segments.lastIndex { $0.firstLSN <= checkpoint.next } ?? 0
    var total: UInt64 = 0
    for segment in contents.segments.dropFirst(start) {
      total += try directory.byteCount(of: segment)
    }
    return total
  }

  private func replay(_ contents: DatabaseDirectory.Contents, into result: inout Result)
    throws(StorageError)
  {
    let checkpointLSN = result.lastLSN
    var replayer = Replayer(
      TreeRoots(data: result.root, system: result.system), lastLSN: result.lastLSN,
      lastTime: result.lastTime, location: location)
    // The replayer then has the only references, and changes the trees in place.
    result.root = .empty
    result.system = .empty
    var reported: UInt64 = 0
    let progress = self.progress
    let total = progress == nil ? 0 : try logByteCount(contents, after: checkpointLSN)
    // A checkpoint proves by its existence that its writes were durable, even if it cannot be read.
    let provenDurable = contents.checkpoints.last { !result.foreign.contains($0) } ?? .zero
    let end = try LogReader.read(
      directory, contents: contents, after: checkpointLSN,
      logChecksum: result.checkpoint == nil ? nil : result.logChecksum,
      provenDurable: provenDurable, databaseID: result.databaseID,
      parallel: location?.parallelReading
    ) { (record, payload) throws(StorageError) in
      if knownErrors != nil { return }
      try replayer.replay(record, payload)
      if let progress, replayer.storedByteCount - reported >= 1 << 20 {
        reported = replayer.storedByteCount
        progress(
          RecoveryProgress(
            phase: .log, completedByteCount: min(reported, total), totalByteCount: total))
      }
    }
    guard let end else { return }
    if end.lastLSN < checkpointLSN {
      // LCOV_EXCL_START: the second of two guards; the log reader refuses such a log first
      throw .corrupt(
        path: directory.path, offset: 0,
        expected: "a log that reaches the checkpoint at write \(checkpointLSN)",
        found: "a log that ends at write \(end.lastLSN)")
      // LCOV_EXCL_STOP
    }
    result.root = replayer.root
    result.system = replayer.system
    result.lastLSN = end.lastLSN
    result.lastTime = max(replayer.lastTime, end.passedOverTime ?? .min)
    result.databaseID = end.databaseID
    result.end = end
    result.report.replayedWriteCount = replayer.writeCount
    result.report.replayedByteCount = replayer.byteCount
    result.replayedLogByteCount = replayer.storedByteCount
    if let torn = end.torn {
      result.report.lastBatchUndecidable = torn.isUndecidable
      result.report.tornTail = torn.sentence
      result.report.tornByteCount = torn.byteCount
    }
  }
}

extension Recovery.Result {
  /// Repairs the tail where it is torn, and opens the log for appending; creates it in a new database.
  ///
  /// - Parameter sharedID: of the new database, if it shares its log: that takes writes to the second root from the
  ///   beginning.
  mutating func openLog(
    _ directory: DatabaseDirectory, _ options: EngineOptions, _ sharedID: DatabaseID? = nil
  ) throws(StorageError) -> sending LogWriter {
    var logOptions = LogOptions()
    logOptions.segmentByteLimit = options.segmentByteLimit
    guard var end else {
      return try LogWriter.create(
        directory, databaseID: sharedID ?? DatabaseID(directory.environment.randomness),
        time: directory.environment.clock.now(), hasSecondRoot: sharedID != nil,
        options: logOptions)
    }
    end = try repairTail(directory, end)
    report.tornFile = end.tornFile
    return try LogWriter.resume(directory, end: end, options: logOptions)
  }
}

extension StorageError {
  /// Whether a newer release wrote the file: it is not damaged.
  fileprivate var isOfNewerVersion: Bool {
    switch self {
    case .unsupportedVersion, .unsupportedFeatures: true
    default: false
    }
  }

  fileprivate func isDamage(of path: String) -> Bool {
    if case .corrupt(path, _, _, _) = self { return true }
    return false
  }
}
