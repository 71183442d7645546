package import DendroStorage

extension Engine {
  /// Reads the log as an opening for reading does, from the newest checkpoint that can be read to the end, and makes
  /// no tree.
  ///
  /// - Parameter checkpointErrors: of the checkpoints that cannot be read.
  /// - Returns: the last write.
  /// - Throws: what opening throws because of a checksum, an order or a missing file.
  /// - Complexity: O(log since the checkpoint). Waits for the disk on the calling thread.
  package static func rehearseOpening(
    of directory: DatabaseDirectory, checkpointErrors: [LogSequenceNumber: StorageError]
  ) throws(StorageError) -> LogSequenceNumber {
    var recovery = Recovery(
      directory: directory, readsAll: true, progress: nil, knownErrors: checkpointErrors)
    return try recovery.run().lastLSN
  }
}
