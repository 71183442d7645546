/// Reads the log, from a checkpoint or from its beginning to its end.
package enum LogReader {
  /// Called for each record with writes behind the checkpoint, in order; the payload is valid during
  /// the call only. The first record may begin with writes that the checkpoint has already.
  package typealias Visitor = (RecordInfo, UnsafeRawBufferPointer) throws(StorageError) -> Void

  /// Reads every record with writes after `checkpoint` and finds the end; changes nothing.
  ///
  /// Every record that is read follows the one before it, in number and in chain, and every segment
  /// its predecessor. What stands behind the last good record is judged by `LogTail`.
  /// - `contents`: of the directory, where they are at hand.
  /// - `checkpoint`: its number; zero without one.
  /// - `logChecksum`: what the checkpoint says that the log has there; nil where that is not compared.
  /// - `provenDurable`: a write that is known to have been durable, by a newer checkpoint, say.
  /// - `databaseID`: what all files must carry, where it is known.
  /// - Returns: nil where there is no log at all, and nothing says that there should be one.
  /// - Throws: `.corrupt` with file, offset, expected and found; `.unsupportedVersion`; `.io`; and
  ///   whatever `visit` throws.
  /// - Complexity: O(bytes of the segments from the one with the first write on); memory for one window
  ///   and one history.
  package static func read(
    _ directory: DatabaseDirectory, contents: DatabaseDirectory.Contents? = nil,
    after checkpoint: LogSequenceNumber = .zero, logChecksum: UInt32? = nil,
    provenDurable: LogSequenceNumber = .zero, databaseID: DatabaseID? = nil, visit: Visitor
  ) throws(StorageError) -> LogEnd? {
    var contents = contents
    if contents == nil { contents = try directory.contents() }
    var walk = LogWalk(
      directory: directory, segments: contents?.segments ?? [], checkpoint: checkpoint,
      logChecksum: logChecksum,
      provenDurable: max(checkpoint, provenDurable),
      databaseID: databaseID)
    return try walk.run(visit)
  }
}
