/// Reads the log from a checkpoint, or from its beginning, to its end. Used by recovery.
package enum LogReader {
  /// Called for each record with writes behind the checkpoint, in order; the payload is valid during
  /// the call only. The first record may begin with writes that the checkpoint contains.
  package typealias Visitor = (RecordInfo, UnsafeRawBufferPointer) throws(StorageError) -> Void

  /// Reads every record with writes after `checkpoint` and finds the end; changes nothing.
  ///
  /// Every record has to follow the one before it, by its first LSN and by the checksum that it repeats, and
  /// every segment its predecessor. `LogTail` decides what the bytes behind the last good record mean.
  /// - `contents`: of the directory, if the caller has them.
  /// - `checkpoint`: its LSN; zero without one.
  /// - `logChecksum`: the checkpoint's; nil if that is not compared with the log.
  /// - `provenDurable`: a write known to have been durable, for example by a newer checkpoint.
  /// - `databaseID`: which all files must have, if it is known.
  /// - `parallel`: for a visitor that wants few records; it may then be called for fewer than all.
  /// - Returns: nil if there is no log, and no checkpoint or `provenDurable` that requires one.
  /// - Throws: `.corrupt` with file, offset, expected and found; `.missing`; `.unsupportedVersion`; `.io`; and
  ///   whatever `visit` throws.
  /// - Complexity: O(bytes of the segments from the one with the first write on); memory for one window of a
  ///   file and one history of the decompressor.
  package static func read(
    _ directory: DatabaseDirectory, contents: DatabaseDirectory.Contents? = nil,
    after checkpoint: LogSequenceNumber = .zero, logChecksum: UInt32? = nil,
    provenDurable: LogSequenceNumber = .zero, databaseID: DatabaseID? = nil,
    parallel: ParallelReading? = nil, visit: Visitor
  ) throws(StorageError) -> LogEnd? {
    var contents = contents
    if contents == nil { contents = try directory.contents() }
    let segments = contents?.segments ?? []
    let provenDurable = max(checkpoint, provenDurable)
    if segments.isEmpty, provenDurable == .zero { return nil }
    var walk = try LogWalk(
      directory: directory, segments: segments, checkpoint: checkpoint, logChecksum: logChecksum,
      provenDurable: provenDurable, databaseID: databaseID, parallel: parallel)
    return try walk.run(visit)
  }
}
