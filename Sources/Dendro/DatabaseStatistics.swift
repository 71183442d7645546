import DendroEngine
import DendroStorage

/// What a database has done since it was opened, and how it stands.
///
/// Writes are numbered 1, 2, 3, … in the order of admission, over the whole life of the database.
public struct DatabaseStatistics: Hashable, Sendable {
  /// The number of the last admitted write.
  public let lastWrite: UInt64
  /// The number of the last write that was synchronized to the disk.
  public let lastDurableWrite: UInt64
  /// The write at which the newest checkpoint stands; 0 if there is none.
  public let lastCheckpointedWrite: UInt64
  /// Writes that changed something.
  public let writeCount: UInt64
  /// Groups of writes that went to the disk together.
  public let batchCount: UInt64
  /// The number of synchronizes.
  public let synchronizeCount: UInt64
  /// Checkpoints taken.
  public let checkpointCount: UInt64
  /// Bytes of the writes before compression.
  public let rawByteCount: UInt64
  /// Bytes appended to the log.
  public let logByteCount: UInt64
  /// Bytes of log since the newest checkpoint.
  public let logBytesSinceCheckpoint: UInt64
  /// Bytes of the newest checkpoint.
  public let checkpointByteCount: UInt64

  init(_ engine: EngineStatistics) {
    lastWrite = engine.lastLSN.rawValue
    lastDurableWrite = engine.durableLSN.rawValue
    lastCheckpointedWrite = engine.checkpointLSN.rawValue
    writeCount = engine.writeCount
    batchCount = engine.batchCount
    synchronizeCount = engine.synchronizeCount
    checkpointCount = engine.checkpointCount
    rawByteCount = engine.rawByteCount
    logByteCount = engine.logByteCount
    logBytesSinceCheckpoint = engine.logBytesSinceCheckpoint
    checkpointByteCount = engine.checkpointByteCount
  }
}

/// What opening found and did.
public struct DatabaseRecoveryReport: Hashable, Sendable {
  /// Whether the database was made by this opening.
  public let created: Bool
  /// The number of the last write in the tree.
  public let lastWrite: UInt64
  /// The write at which the loaded checkpoint stands; nil if the log alone was replayed.
  public let checkpointedWrite: UInt64?
  /// Newer checkpoints that could not be read, with the reason.
  public let unreadableCheckpoints: [String]
  /// Writes replayed from the log.
  public let replayedWriteCount: UInt64
  /// Bytes replayed from the log.
  public let replayedByteCount: UInt64
  /// What was cut from the end of the log, in one sentence; nil if the log ended cleanly. A write
  /// that was cut had never been acknowledged under ``Database/Durability/everyCommit``.
  public let tornTail: String?
  /// Bytes cut.
  public let tornByteCount: UInt64
  /// The file in which what was cut is kept.
  public let tornFile: String?
  /// Whether the last acknowledged group of writes may have been in what was cut.
  public let isLastBatchUndecidable: Bool
  /// Files in the directory that are not the database's; they were left alone.
  public let foreignFiles: [String]
  /// Time spent.
  public let elapsed: Duration

  init(_ report: RecoveryReport) {
    created = report.created
    lastWrite = report.lastLSN.rawValue
    checkpointedWrite = report.checkpointLSN?.rawValue
    unreadableCheckpoints = report.unreadableCheckpoints
    replayedWriteCount = report.replayedWriteCount
    replayedByteCount = report.replayedByteCount
    tornTail = report.tornTail
    tornByteCount = report.tornByteCount
    tornFile = report.tornFile
    isLastBatchUndecidable = report.lastBatchUndecidable
    foreignFiles = report.foreignFiles
    elapsed = report.elapsed
  }
}
