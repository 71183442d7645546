/// The header of a record with writes that follows the record before it, decoded by the fewest steps.
///
/// It takes no header that `RecordHeader.decode` refuses, and gives the same of it; what it does not take, `decode`
/// may.
struct ChainedHeader {
  let header: RecordHeader
  let byteCount: Int
  let checksum: UInt32

  /// Nil if the bytes are not such a header; also near their end.
  ///
  /// - Parameters:
  ///   - bytes: from the header on.
  ///   - offset: of the header in its file.
  ///   - lsn: the last write of the record before.
  ///   - previousChecksum: that record's header's.
  @inline(__always)
  init?(
    _ bytes: UnsafeRawBufferPointer, offset: UInt64, in segment: SegmentHeader,
    after lsn: LogSequenceNumber, _ previousChecksum: UInt32
  ) {
    guard bytes.count >= RecordHeader.byteCountMax, let start = bytes.baseAddress else {
      return nil
    }
    let found: (header: RecordHeader, end: Int)?
    switch start.load(as: UInt8.self) {
    case RecordHeader.shortMagic: found = Self.short(start, in: segment)
    case RecordHeader.magic.0: found = Self.full(start, in: segment)
    default: return nil
    }
    guard let found, found.header.firstLSN == lsn.next else { return nil }
    guard found.header.follows(previousChecksum) else { return nil }
    checksum = Self.uint32(start, found.end)
    let expected = Checksum.short(
      UnsafeRawBufferPointer(start: start, count: found.end), seed: segment.salt &+ offset)
    guard checksum == expected else { return nil }
    header = found.header
    byteCount = found.end &+ 4
  }

  /// - Returns: the fields, and where the checksum of the header stands.
  @inline(__always)
  private static func short(_ start: UnsafeRawPointer, in segment: SegmentHeader) -> (
    RecordHeader, Int
  )? {
    let shared = Int(start.load(fromByteOffset: 1, as: UInt8.self))
    let stored = Int(start.load(fromByteOffset: 2, as: UInt8.self))
    guard stored > 0, shared + stored <= ShortPayload.byteCountMax else { return nil }
    var end = 3
    guard let lsnDelta = varint(start, &end), let timeDelta = varint(start, &end),
      let first = first(lsnDelta, count: 1, in: segment)
    else { return nil }
    let header = RecordHeader(
      kind: .writes, isCompressed: false, isRestart: false, storedByteCount: stored,
      rawByteCount: shared + stored, firstLSN: first, count: 1,
      baseTime: segment.baseTime &+ signed(timeDelta),
      durableUpTo: LogSequenceNumber(first.rawValue &- 1),
      previousChecksum: UInt32(
        UInt16(littleEndian: start.loadUnaligned(fromByteOffset: end, as: UInt16.self))),
      payloadChecksum: UInt64(uint32(start, end &+ 2)), isShort: true)
    return (header, end &+ 6)
  }

  @inline(__always)
  private static func full(_ start: UnsafeRawPointer, in segment: SegmentHeader) -> (
    RecordHeader, Int
  )? {
    let flags = start.load(fromByteOffset: 2, as: UInt8.self)
    let isCompressed = flags & RecordHeader.compressedFlag != 0
    let known = RecordHeader.compressedFlag | RecordHeader.restartFlag
    guard start.load(fromByteOffset: 1, as: UInt8.self) == RecordHeader.magic.1,
      flags & ~known == RecordKind.writes.rawValue
    else { return nil }
    var end = 3
    guard let stored = varint(start, &end),
      let raw = isCompressed ? varint(start, &end) : stored,
      Compression.isPlausible(raw: raw, stored: stored),
      let lsnDelta = varint(start, &end), let count = varint(start, &end), count > 0, count <= raw,
      let timeDelta = varint(start, &end), let durableDelta = varint(start, &end),
      let first = first(lsnDelta, count: count, in: segment), durableDelta < first.rawValue
    else { return nil }
    let header = RecordHeader(
      kind: .writes, isCompressed: isCompressed,
      isRestart: flags & RecordHeader.restartFlag != 0, storedByteCount: Int(stored),
      rawByteCount: Int(raw), firstLSN: first, count: Int(count),
      baseTime: segment.baseTime &+ signed(timeDelta),
      durableUpTo: LogSequenceNumber(first.rawValue &- 1 &- durableDelta),
      previousChecksum: uint32(start, end),
      payloadChecksum: UInt64(
        littleEndian: start.loadUnaligned(fromByteOffset: end &+ 4, as: UInt64.self)))
    return (header, end &+ 12)
  }

  /// The number of the first of `count` writes; nil if a number is too large.
  @inline(__always)
  private static func first(
    _ delta: UInt64, count: UInt64, in segment: SegmentHeader
  ) -> LogSequenceNumber? {
    let (first, overflow) = segment.firstLSN.rawValue.addingReportingOverflow(delta)
    let limit = UInt64(Int64.max)
    guard !overflow, first <= limit, count <= limit &- first else { return nil }
    return LogSequenceNumber(first)
  }

  @inline(__always)
  private static func signed(_ value: UInt64) -> Int64 {
    Int64(bitPattern: value &>> 1) ^ -Int64(bitPattern: value & 1)
  }

  @inline(__always)
  private static func uint32(_ start: UnsafeRawPointer, _ offset: Int) -> UInt32 {
    UInt32(littleEndian: start.loadUnaligned(fromByteOffset: offset, as: UInt32.self))
  }

  /// A varint in its shortest form, of 63 bits at most; nil for another one. Ten bytes are there.
  @inline(__always)
  private static func varint(_ start: UnsafeRawPointer, _ offset: inout Int) -> UInt64? {
    var byte = start.load(fromByteOffset: offset, as: UInt8.self)
    offset &+= 1
    if byte < 0x80 { return UInt64(byte) }
    var value = UInt64(byte & 0x7F)
    var shift: UInt64 = 7
    while shift < 63 {
      byte = start.load(fromByteOffset: offset, as: UInt8.self)
      offset &+= 1
      value |= UInt64(byte & 0x7F) &<< shift
      if byte < 0x80 { return byte == 0 ? nil : value }
      shift &+= 7
    }
    return nil
  }
}
