extension SegmentReader {
  /// The record at `offset` and its payload, checked, if it holds writes and follows the record before it; nil
  /// if it is another one or wrong in any way: `record(at:)` and `payload(of:)` then say which. The payload is
  /// valid until the next call.
  ///
  /// A log that was written one commit at a time has one such record for each write: most of the time of an opening
  /// is spent here.
  @inline(__always)
  func chainedRecord(
    at offset: UInt64, after lsn: LogSequenceNumber, _ checksum: UInt32
  ) throws(StorageError) -> (RecordInfo, UnsafeRawBufferPointer)? {
    let count = RecordHeader.byteCountMax + ShortPayload.byteCountMax
    let bytes = try bytes(at: offset, count: count)
    guard
      let found = ChainedHeader(bytes, offset: offset, in: header, after: lsn, checksum),
      found.byteCount + found.header.storedByteCount <= bytes.count
    else { return nil }
    let stored = UnsafeRawBufferPointer(
      rebasing: bytes[found.byteCount..<found.byteCount + found.header.storedByteCount])
    guard let payload = chainedPayload(found.header, stored) else { return nil }
    return (
      RecordInfo(
        header: found.header, segment: name, offset: offset, headerByteCount: found.byteCount,
        checksum: found.checksum),
      payload
    )
  }

  /// The payload of a record with writes, decompressed and checked; nil if it is wrong. `payload(of:)` may be asked
  /// for it then, as if this had not been called.
  @inline(__always)
  private func chainedPayload(
    _ record: RecordHeader, _ stored: UnsafeRawBufferPointer
  ) -> UnsafeRawBufferPointer? {
    if record.isShort {
      guard
        let payload = shortPayload.found(shared: record.sharedByteCount, stored: stored),
        record.hasPayload(Checksum.xxh3(payload, seed: header.salt))
      else { return nil }
      shortPayload.noteFound()
      return shortPayload.whole()
    }
    if record.isRestart {
      decompressor.restart()
      shortPayload.restart()
    }
    guard record.isCompressed else {
      guard record.hasPayload(Checksum.xxh3(stored, seed: header.salt)) else { return nil }
      decompressor.append(raw: stored)
      return stored
    }
    guard let payload = decompressor.decompress(stored, rawByteCount: record.rawByteCount) else {
      return nil
    }
    guard record.hasPayload(Checksum.xxh3(payload, seed: header.salt)) else {
      decompressor.forget(payload.count)
      return nil
    }
    return payload
  }
}
