/// Creates the file of a new segment, and removes it if a roll is taken back.
enum SegmentCreation {
  /// Creates a segment with its header. The file and its name are durable when it returns.
  static func create(_ header: SegmentHeader, in directory: DatabaseDirectory)
    throws(StorageError) -> any File
  {
    try directory.checkOwnership()
    let target = try NewFile(
      directory.path(of: SegmentName(firstLSN: header.firstLSN)), in: directory)
    var bytes = ByteWriter()
    header.encode(into: &bytes)
    try target.file.writeAll(bytes.bytes, at: 0, path: target.temporaryPath)
    try target.publish()
    return target.file
  }

  /// Removes a segment without records, also if its creation failed half way.
  static func takeBack(_ header: SegmentHeader, in directory: DatabaseDirectory)
    throws(StorageError)
  {
    let path = directory.path(of: SegmentName(firstLSN: header.firstLSN))
    try directory.fileSystem.remove(at: path + FileName.temporarySuffix)
    try directory.fileSystem.remove(at: path)
    try directory.synchronize()
  }
}

/// Writes a seal and returns where it ends.
func appendSeal(
  file: any File, path: String, segment: SegmentHeader, offset: UInt64, checksum: UInt32,
  lastLSN: LogSequenceNumber, time: Int64, successorChecksum: UInt32
) throws(StorageError) -> UInt64 {
  var payload = ByteWriter()
  payload.uint32(successorChecksum)
  var bytes = RawBuffer()
  bytes.reserve(RecordHeader.byteCountMax + Seal.byteCount)
  // Everything before a seal was synchronized before it.
  let header = RecordHeader(
    kind: .seal, isCompressed: false, isRestart: false, storedByteCount: Seal.byteCount,
    rawByteCount: Seal.byteCount, firstLSN: lastLSN.next, count: 0, baseTime: time,
    durableUpTo: lastLSN, previousChecksum: checksum,
    payloadChecksum: Checksum.xxh3(payload.bytes, seed: segment.salt))
  let (byteCount, _) = header.encode(at: bytes.base, offset: offset, segment: segment)
  (bytes.base + byteCount).copyMemory(
    from: payload.bytes.baseAddress!, byteCount: Seal.byteCount)
  let end = offset + UInt64(byteCount + Seal.byteCount)
  try file.writeAll(
    UnsafeRawBufferPointer(start: bytes.base, count: byteCount + Seal.byteCount), at: offset,
    path: path)
  return end
}
