// The header of a record, written and read in one place; see <doc:LogFormat>.

/// What a record is for.
package enum RecordKind: UInt8, Hashable, Sendable {
  /// Writes, one or more.
  case writes = 1
  /// The end of a segment; its payload names the successor.
  case seal = 2
  /// Nothing but how far the log is known to be durable.
  case mark = 3
}

/// The header of one record.
package struct RecordHeader: Hashable, Sendable {
  /// F5 never occurs in UTF-8, so that text is passed over quickly when headers are searched.
  static let magic: (UInt8, UInt8) = (0xF5, 0x52)
  static let compressedFlag: UInt8 = 0x10
  static let restartFlag: UInt8 = 0x20
  /// Magic, kind, six varints at their longest, two checksums and the previous one.
  static let byteCountMax = 2 + 1 + 6 * 10 + 4 + 8 + 4
  /// What stands behind the varints.
  private static let trailerByteCount = 16
  private static let byteCountMin = 3 + 5 + trailerByteCount

  package var kind: RecordKind
  package var isCompressed: Bool
  package var isRestart: Bool
  package var storedByteCount: Int
  package var rawByteCount: Int
  /// Of the first write, or, where there is none, of the next write to come.
  package var firstLSN: LogSequenceNumber
  package var count: Int
  /// Milliseconds since 1970.
  package var baseTime: Int64
  /// All writes up to here were synchronized when the record was made.
  package var durableUpTo: LogSequenceNumber
  /// The checksum of the header before, or of the segment's header.
  package var previousChecksum: UInt32
  /// Of the raw payload.
  package var payloadChecksum: UInt64

  /// The last write in it, or the one before `firstLSN` where it has none.
  package var lastLSN: LogSequenceNumber {
    LogSequenceNumber(firstLSN.rawValue &+ UInt64(count) &- 1)
  }

  /// Stores the header and returns its length and checksum; `byteCountMax` bytes must be free.
  func encode(
    at place: UnsafeMutableRawPointer, offset: UInt64, segment: SegmentHeader
  ) -> (byteCount: Int, checksum: UInt32) {
    place.storeBytes(of: Self.magic.0, as: UInt8.self)
    place.storeBytes(of: Self.magic.1, toByteOffset: 1, as: UInt8.self)
    var flags = kind.rawValue
    if isCompressed { flags |= Self.compressedFlag }
    if isRestart { flags |= Self.restartFlag }
    place.storeBytes(of: flags, toByteOffset: 2, as: UInt8.self)
    var end = 3
    end &+= storeVarint(UInt64(storedByteCount), at: place + end)
    if isCompressed { end &+= storeVarint(UInt64(rawByteCount), at: place + end) }
    end &+= storeVarint(firstLSN.rawValue &- segment.firstLSN.rawValue, at: place + end)
    end &+= storeVarint(UInt64(count), at: place + end)
    end &+= storeVarint(zigzag(baseTime &- segment.baseTime), at: place + end)
    end &+= storeVarint(
      firstLSN.rawValue &- 1 &- durableUpTo.rawValue, at: place + end)
    place.storeBytes(of: previousChecksum.littleEndian, toByteOffset: end, as: UInt32.self)
    place.storeBytes(of: payloadChecksum.littleEndian, toByteOffset: end &+ 4, as: UInt64.self)
    end &+= 12
    // The offset in the seed: a header is valid at its own place only, so that no copy of it, in a
    // payload or misdirected by the disk, is ever taken for a record.
    let checksum = Checksum.short(
      UnsafeRawBufferPointer(start: place, count: end),
      seed: segment.salt &+ offset)
    place.storeBytes(of: checksum.littleEndian, toByteOffset: end, as: UInt32.self)
    return (end &+ 4, checksum)
  }

  /// What decoding makes of the bytes at a place.
  enum Decoded {
    case valid(RecordHeader, byteCount: Int, checksum: UInt32)
    case invalid(Fault)
  }

  /// Why no header stands at a place. Made into words only where somebody is told.
  enum Fault: Error, Hashable, CustomStringConvertible {
    case truncated
    case noMagic
    case noLength
    case checksum(expected: UInt32, found: UInt32)
    case field(String)

    var expected: String {
      switch self {
      case .truncated: "a whole record header"
      case .noMagic: "record magic f5 52"
      case .noLength: "the lengths of a record"
      case .checksum(let expected, _): "record header checksum \(hexadecimal(expected))"
      case .field(let rule): rule
      }
    }

    var description: String {
      switch self {
      case .truncated: "the end of the file"
      case .noMagic, .noLength: "other bytes"
      case .checksum(_, let found): hexadecimal(found)
      case .field: "a header with another"
      }
    }
  }

  /// Decodes the header at the start of `bytes`, which reach to the file's end or at least over
  /// `byteCountMax`.
  ///
  /// The checksum is compared before any field is believed. Bounded work whatever the bytes.
  static func decode(
    _ bytes: UnsafeRawBufferPointer, offset: UInt64, segment: SegmentHeader
  ) -> Decoded {
    guard bytes.count >= byteCountMin else { return .invalid(.truncated) }
    guard bytes[0] == magic.0, bytes[1] == magic.1 else { return .invalid(.noMagic) }
    let flags = bytes[2]
    let isCompressed = flags & compressedFlag != 0
    var reader = ByteReader(bytes, at: 3)
    let stored: UInt64
    let raw: UInt64
    let lsnDelta: UInt64
    let count: UInt64
    let timeDelta: Int64
    let durableDelta: UInt64
    let previousChecksum: UInt32
    let payloadChecksum: UInt64
    let checksum: UInt32
    let end: Int
    do {
      stored = try reader.varint()
      raw = isCompressed ? try reader.varint() : stored
      lsnDelta = try reader.varint()
      count = try reader.varint()
      timeDelta = try reader.signedVarint()
      durableDelta = try reader.varint()
      previousChecksum = try reader.uint32()
      payloadChecksum = try reader.uint64()
      end = reader.offset
      checksum = try reader.uint32()
    } catch {
      if case .truncated = error { return .invalid(.truncated) }
      return .invalid(.noLength)
    }
    let expected = Checksum.short(
      UnsafeRawBufferPointer(rebasing: bytes[..<end]),
      seed: segment.salt &+ offset)
    guard checksum == expected else {
      return .invalid(.checksum(expected: expected, found: checksum))
    }

    guard let kind = RecordKind(rawValue: flags & 0x0F), flags & 0xC0 == 0 else {
      return .invalid(.field("a known kind and flags, not \(hexadecimal(flags))"))
    }
    let isRestart = flags & restartFlag != 0
    guard Compression.isPlausible(raw: raw, stored: stored) else {
      return .invalid(.field("lengths within the limits, not \(stored) stored of \(raw) raw"))
    }
    let (first, firstOverflow) = segment.firstLSN.rawValue.addingReportingOverflow(lsnDelta)
    let (last, lastOverflow) = first.addingReportingOverflow(count)
    guard !firstOverflow, !lastOverflow, last <= UInt64(Int64.max), count <= raw else {
      return .invalid(.field("a count that the payload can hold, not \(count)"))
    }
    guard durableDelta < first else {
      return .invalid(.field("a durable write before the record's first"))
    }
    switch kind {
    case .writes:
      guard count > 0 else {
        return .invalid(.field("one write or more"))
      }
    case .seal:
      guard count == 0 && flags == kind.rawValue && stored == UInt64(Seal.byteCount) else {
        return .invalid(.field("a seal of \(Seal.byteCount) bytes"))
      }
    case .mark:
      guard count == 0 && flags == kind.rawValue && stored == 0 else {
        return .invalid(.field("a mark without payload"))
      }
    }
    let header = RecordHeader(
      kind: kind, isCompressed: isCompressed, isRestart: isRestart, storedByteCount: Int(stored),
      rawByteCount: Int(raw), firstLSN: LogSequenceNumber(first), count: Int(count),
      baseTime: segment.baseTime &+ timeDelta,
      durableUpTo: LogSequenceNumber(first &- 1 &- durableDelta),
      previousChecksum: previousChecksum, payloadChecksum: payloadChecksum)
    return .valid(header, byteCount: end &+ 4, checksum: checksum)
  }
}

/// The payload of a seal: the header checksum of the successor, whose name follows from the seal's
/// first LSN.
enum Seal {
  static let byteCount = 4

  static func successorChecksum(_ payload: UnsafeRawBufferPointer) -> UInt32? {
    var reader = ByteReader(payload)
    return try? reader.uint32()
  }
}

/// A record and where it stands.
package struct RecordInfo: Hashable, Sendable {
  package var header: RecordHeader
  package var segment: SegmentName
  /// Of the header in its file.
  package var offset: UInt64
  package var headerByteCount: Int
  /// Of the header; the next record repeats it.
  package var checksum: UInt32

  /// Where the next record begins.
  package var endOffset: UInt64 {
    offset &+ UInt64(headerByteCount) &+ UInt64(header.storedByteCount)
  }
  package var kind: RecordKind { header.kind }
  package var firstLSN: LogSequenceNumber { header.firstLSN }
  package var lastLSN: LogSequenceNumber { header.lastLSN }
  package var count: Int { header.count }
  package var baseTime: Int64 { header.baseTime }
  package var durableUpTo: LogSequenceNumber { header.durableUpTo }
}
