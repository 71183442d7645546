extension SegmentReader {
  /// The record at `offset` and its payload, checked, where it is a short one that follows the record before it;
  /// nil, and nothing has changed, where it is another one or wrong in any way: `record(at:)` and `payload(of:)`
  /// then say which. The payload is valid until the next call.
  ///
  /// A log that was written one commit at a time has one such record for each write: most of the time of an opening
  /// is spent here.
  @inline(__always)
  func shortRecord(
    at offset: UInt64, after lsn: LogSequenceNumber, _ checksum: UInt32
  ) throws(StorageError) -> (RecordInfo, UnsafeRawBufferPointer)? {
    let count = ShortHeader.byteCountMax + ShortPayload.byteCountMax
    let bytes = try bytes(at: offset, count: count)
    guard
      let header = ShortHeader(bytes, offset: offset, in: self.header),
      header.lsn == lsn.next, header.previousChecksum == UInt16(truncatingIfNeeded: checksum),
      header.byteCount + header.storedByteCount <= bytes.count,
      let payload = shortPayload.found(
        shared: header.sharedByteCount,
        stored: UnsafeRawBufferPointer(
          rebasing: bytes[header.byteCount..<header.byteCount + header.storedByteCount])),
      Checksum.short(payload, seed: self.header.salt) == header.payloadChecksum
    else { return nil }
    shortPayload.noteFound()
    let record = RecordInfo(
      header: RecordHeader(
        kind: .writes, isCompressed: false, isRestart: false,
        storedByteCount: header.storedByteCount,
        rawByteCount: header.sharedByteCount + header.storedByteCount, firstLSN: header.lsn,
        count: 1, baseTime: self.header.baseTime &+ header.timeDelta, durableUpTo: lsn,
        previousChecksum: UInt32(header.previousChecksum),
        payloadChecksum: UInt64(header.payloadChecksum), isShort: true),
      segment: name, offset: offset, headerByteCount: header.byteCount, checksum: header.checksum)
    return (record, shortPayload.whole())
  }
}

/// The header of a short record, decoded by the fewest steps.
private struct ShortHeader {
  /// Magic, two lengths, two varints at their longest, half of the previous checksum and two checksums.
  static let byteCountMax = 3 + 2 * 10 + 2 + 4 + 4

  var sharedByteCount: Int
  var storedByteCount: Int
  var lsn: LogSequenceNumber
  var timeDelta: Int64
  var previousChecksum: UInt16
  var payloadChecksum: UInt32
  var checksum: UInt32
  var byteCount: Int

  /// Nil unless the header is one that `RecordHeader.decode` accepts too; also nil near the end of the bytes.
  @inline(__always)
  init?(_ bytes: UnsafeRawBufferPointer, offset: UInt64, in segment: SegmentHeader) {
    guard bytes.count >= Self.byteCountMax, let start = bytes.baseAddress,
      start.load(as: UInt8.self) == RecordHeader.shortMagic
    else { return nil }
    sharedByteCount = Int(start.load(fromByteOffset: 1, as: UInt8.self))
    storedByteCount = Int(start.load(fromByteOffset: 2, as: UInt8.self))
    guard storedByteCount > 0, sharedByteCount + storedByteCount <= ShortPayload.byteCountMax
    else { return nil }
    var end = 3
    guard let lsnDelta = Self.varint(start, &end), let zigzag = Self.varint(start, &end)
    else { return nil }
    // A sum that has wrapped around is less than the number of every write before it, and so does not follow.
    let first = segment.firstLSN.rawValue &+ lsnDelta
    guard first < UInt64(Int64.max) else { return nil }
    lsn = LogSequenceNumber(first)
    timeDelta = Int64(bitPattern: zigzag &>> 1) ^ -Int64(bitPattern: zigzag & 1)
    previousChecksum = UInt16(
      littleEndian: start.loadUnaligned(fromByteOffset: end, as: UInt16.self))
    payloadChecksum = UInt32(
      littleEndian: start.loadUnaligned(fromByteOffset: end &+ 2, as: UInt32.self))
    checksum = UInt32(
      littleEndian: start.loadUnaligned(fromByteOffset: end &+ 6, as: UInt32.self))
    byteCount = end &+ 10
    let expected = Checksum.short(
      UnsafeRawBufferPointer(start: start, count: end &+ 6), seed: segment.salt &+ offset)
    guard checksum == expected else { return nil }
  }

  /// A varint in its shortest form, of 63 bits at most; nil for another one. Ten bytes are there.
  @inline(__always)
  private static func varint(_ start: UnsafeRawPointer, _ offset: inout Int) -> UInt64? {
    var value: UInt64 = 0
    var shift: UInt64 = 0
    while shift < 63 {
      let byte = start.load(fromByteOffset: offset, as: UInt8.self)
      offset &+= 1
      value |= UInt64(byte & 0x7F) &<< shift
      if byte < 0x80 { return byte == 0 && shift > 0 ? nil : value }
      shift &+= 7
    }
    return nil
  }
}
