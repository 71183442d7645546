/// Writes a checkpoint while the log grows. The file appears complete or not at all.
///
/// The log must be durable up to the checkpoint's LSN before `finish`: a checkpoint proves by its existence
/// that those writes were. It has one owner; not for two threads at once.
package final class CheckpointWriter {
  private let target: NewFile
  private let path: String
  package let header: CheckpointHeader
  private var offset: UInt64
  private var index = ByteWriter()
  private var chunkCount: UInt32 = 0
  package private(set) var rawByteCount: UInt64 = 0
  private var bytes = ByteWriter()
  private var block = RawBuffer()
  private var isOpen = true

  /// Bytes of the file so far.
  package var storedByteCount: UInt64 { offset }

  /// Begins a checkpoint; until `finish` it does not exist.
  ///
  /// - `time`: of the write `lsn`, milliseconds since 1970.
  /// - `logChecksum`: what the log has at `lsn`.
  /// - `version`: 0 for a file such as older releases wrote.
  /// - `hasSecondRoot`: whether its chunks hold the second root, too.
  package static func begin(
    _ directory: DatabaseDirectory, databaseID: DatabaseID, lsn: LogSequenceNumber, time: Int64,
    logChecksum: UInt32, version: UInt32 = FileFormat.newestVersion, hasSecondRoot: Bool = false
  ) throws(StorageError) -> CheckpointWriter {
    try directory.checkWritable()
    var format = FileFormat(version: version)
    format.hasSecondRoot = hasSecondRoot
    return try CheckpointWriter(
      directory,
      CheckpointHeader(
        format: format, databaseID: databaseID, salt: directory.environment.randomness.next(),
        lsn: lsn, time: time, logChecksum: logChecksum))
  }

  private init(_ directory: DatabaseDirectory, _ header: CheckpointHeader) throws(StorageError) {
    self.header = header
    target = try NewFile(directory.path(ofCheckpoint: header.lsn), in: directory)
    path = target.temporaryPath
    header.encode(into: &bytes)
    offset = UInt64(bytes.count)
    do {
      try target.file.writeAll(bytes.bytes, at: 0, path: path)
    } catch {
      abort()
      throw error
    }
  }

  /// Appends one chunk.
  ///
  /// - Parameter raw: 64 MiB at most; 64–256 KiB are a good size: they are the unit of reading and of decoding
  ///   side by side.
  /// - Throws: `.io`, after which only `abort` is of use; `.limit`.
  package func chunk(_ raw: UnsafeRawBufferPointer) throws(StorageError) {
    precondition(isOpen, "a checkpoint takes chunks until it is finished or aborted")
    try limit("the size of a checkpoint chunk", raw.count, ChunkHeader.rawByteLimit)
    try limit("the number of checkpoint chunks", Int(chunkCount), Int(Int32.max))
    let byteCount = try append(raw, isIndex: false)
    index.varint(UInt64(byteCount))
    index.varint(UInt64(raw.count))
    if header.format.version == 0 { index.varint(0) }
    try limit("the size of a checkpoint's index", index.count, Compression.rawByteLimit)
    chunkCount += 1
    rawByteCount += UInt64(raw.count)
  }

  /// Completes the file and makes it exist: durable under its name when it returns.
  package func finish(leafCount: UInt64, contentHash: UInt64) throws(StorageError) {
    precondition(isOpen, "a checkpoint is finished once")
    let indexOffset = offset
    let indexByteCount = try append(index.bytes, isIndex: true)
    bytes.removeAll()
    CheckpointFooter(
      indexOffset: indexOffset, indexByteCount: UInt32(indexByteCount), chunkCount: chunkCount,
      leafCount: leafCount, rawByteCount: rawByteCount, contentHash: contentHash, lsn: header.lsn
    ).encode(into: &bytes, salt: header.salt)
    try target.file.writeAll(bytes.bytes, at: offset, path: path)
    offset += UInt64(bytes.count)
    try target.publish()
    isOpen = false
  }

  /// Discards the checkpoint and removes what was written, if the disk allows it; otherwise the next opener
  /// does. After `finish` it does nothing.
  package func abort() {
    if !isOpen { return }
    isOpen = false
    target.discard()
  }

  private func append(_ raw: UnsafeRawBufferPointer, isIndex: Bool) throws(StorageError) -> Int {
    block.reserve(Compression.bound(raw.count))
    let blockByteCount = Compression.compress(raw, into: block.base)
    let isCompressed = blockByteCount > 0 && blockByteCount < raw.count
    let stored =
      isCompressed ? UnsafeRawBufferPointer(start: block.base, count: blockByteCount) : raw
    bytes.removeAll()
    ChunkHeader(
      isIndex: isIndex, isCompressed: isCompressed, storedByteCount: stored.count,
      rawByteCount: raw.count, number: chunkCount,
      payloadChecksum: Checksum.xxh3(raw, seed: header.salt)
    ).encode(into: &bytes, salt: header.salt, offset: offset)
    bytes.bytes(stored)
    try target.file.writeAll(bytes.bytes, at: offset, path: path)
    offset += UInt64(bytes.count)
    return bytes.count
  }

  private func limit(_ what: String, _ value: Int, _ limit: Int) throws(StorageError) {
    if value > limit {
      throw .limit(what: what, value: UInt64(value), limit: UInt64(limit))
    }
  }
}
