package import DendroStorage

/// What an engine has done since it was opened, and how it stands.
package struct EngineStatistics: Sendable, Hashable {
  /// The last admitted write.
  package var lastLSN = LogSequenceNumber.zero
  /// The last write that was synchronized to the disk.
  package var durableLSN = LogSequenceNumber.zero
  /// The write at which the newest checkpoint stands.
  package var checkpointLSN = LogSequenceNumber.zero
  package var writeCount: UInt64 = 0
  /// Batches handed to the disk.
  package var batchCount: UInt64 = 0
  package var recordCount: UInt64 = 0
  package var synchronizeCount: UInt64 = 0
  package var checkpointCount: UInt64 = 0
  /// Bytes of encoded writes before compression.
  package var rawByteCount: UInt64 = 0
  /// Bytes of records appended, headers included.
  package var logByteCount: UInt64 = 0
  /// Bytes of the log since the newest checkpoint.
  package var logBytesSinceCheckpoint: UInt64 = 0
  /// Bytes of the newest checkpoint's file; 0 if there is none.
  package var checkpointByteCount: UInt64 = 0

  /// Chunks of the checkpoint that was opened which were not read yet.
  package var unreadChunkCount = 0
  /// What has gone wrong since the engine was opened, the opening included.
  package var failureCounts: [FailureKind: UInt64] = [:]

  package init() {}
}
