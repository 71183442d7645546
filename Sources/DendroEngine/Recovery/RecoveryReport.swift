package import DendroStorage

/// What opening found and did.
package struct RecoveryReport: Sendable, Hashable {
  /// The last write in the tree.
  package var lastLSN = LogSequenceNumber.zero
  /// The checkpoint that was loaded; nil if the log alone was replayed.
  package var checkpointLSN: LogSequenceNumber?
  /// Newer checkpoints that could not be read, with the reason. `verify` reports them as damage.
  package var unreadableCheckpoints: [String] = []
  /// Writes replayed from the log.
  package var replayedWriteCount: UInt64 = 0
  package var replayedByteCount: UInt64 = 0
  package var segmentCount = 0
  /// What was cut from the end of the log, in one sentence; nil if the log ended cleanly.
  package var tornTail: String?
  /// Bytes cut and quarantined.
  package var tornByteCount: UInt64 = 0
  /// The file that holds what was cut.
  package var tornFile: String?
  /// Whether the cut bytes may have been the last acknowledged batch: damage to that looks like an append
  /// that a kill interrupted.
  package var lastBatchUndecidable = false
  /// Files in the directory that are not the database's; they were not touched.
  package var foreignFiles: [String] = []
  /// Whether the database was created by this opening.
  package var created = false
  /// Time spent.
  package var elapsed: Duration = .zero

  package init() {}
}

/// The progress of opening.
package struct RecoveryProgress: Sendable, Hashable {
  package enum Phase: String, Sendable { case checkpoint, log }
  package var phase: Phase
  /// Bytes of this phase's files that were read.
  package var completedByteCount: UInt64
  package var totalByteCount: UInt64
}
