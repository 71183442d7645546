// The header of a record, written and read in one place; see <doc:LogFormat>.

/// What a record is for.
package enum RecordKind: UInt8, Hashable, Sendable {
  /// Writes, one or more.
  case writes = 1
  /// The end of a segment; its payload names the successor.
  case seal = 2
  /// An idle record: no writes, only how far the log is known to be durable.
  case idle = 3
}

/// The header of one record.
package struct RecordHeader: Hashable, Sendable {
  /// F5 and F6 never occur in UTF-8, so that a search for headers passes over text quickly.
  static let magic: (UInt8, UInt8) = (0xF5, 0x52)
  static let shortMagic: UInt8 = 0xF6
  static let compressedFlag: UInt8 = 0x10
  static let restartFlag: UInt8 = 0x20
  /// Magic, kind, six varints at their longest, two checksums and the previous one.
  static let byteCountMax = 2 + 1 + 6 * 10 + 4 + 8 + 4
  /// What stands behind the varints.
  private static let trailerByteCount = 16
  static let byteCountMin = 3 + 5 + trailerByteCount
  /// Magic, two lengths, two varints, two checksums and half of the previous one.
  static let shortByteCountMin = 3 + 2 + 2 + 4 + 4

  package var kind: RecordKind
  package var isCompressed: Bool
  package var isRestart: Bool
  package var storedByteCount: Int
  package var rawByteCount: Int
  /// Of the first write, or, if there is none, of the next write to come.
  package var firstLSN: LogSequenceNumber
  package var count: Int
  /// Milliseconds since 1970.
  package var baseTime: Int64
  /// All writes up to here were synchronized when the record was made.
  package var durableUpTo: LogSequenceNumber
  /// The checksum of the header before, or of the segment's header; its low half in a short record.
  package var previousChecksum: UInt32
  /// Of the raw payload; its low half in a short record.
  package var payloadChecksum: UInt64
  /// Whether it is a short record: a set that was durable before the next write came, in few bytes.
  package var isShort = false

  /// The last write in it, or the one before `firstLSN` if it has none.
  package var lastLSN: LogSequenceNumber {
    LogSequenceNumber(firstLSN.rawValue &+ UInt64(count) &- 1)
  }

  /// The first bytes of a short record's payload, which are those of the one before and are not stored.
  var sharedByteCount: Int { isShort ? rawByteCount - storedByteCount : 0 }

  /// Whether the payload cannot be read without payloads before it.
  var dependsOnHistory: Bool { !isRestart && (isCompressed || sharedByteCount > 0) }

  /// Whether the header before may have this checksum.
  func follows(_ checksum: UInt32) -> Bool {
    isShort
      ? UInt16(truncatingIfNeeded: checksum) == UInt16(truncatingIfNeeded: previousChecksum)
      : checksum == previousChecksum
  }

  /// What a message says of a header that does not follow the one with this checksum.
  func previousChecksumDifference(from checksum: UInt32) -> (expected: String, found: String) {
    let digits: (UInt32) -> String = {
      isShort ? hexadecimal(UInt16(truncatingIfNeeded: $0)) : hexadecimal($0)
    }
    return ("previous checksum \(digits(checksum))", digits(previousChecksum))
  }

  /// Whether a raw payload may have this checksum.
  func hasPayload(_ checksum: UInt64) -> Bool {
    isShort
      ? UInt32(truncatingIfNeeded: checksum) == UInt32(truncatingIfNeeded: payloadChecksum)
      : checksum == payloadChecksum
  }

  /// As much of a payload's checksum as stands in the header.
  func payloadDigits(_ checksum: UInt64) -> String {
    isShort ? hexadecimal(UInt32(truncatingIfNeeded: checksum)) : hexadecimal(checksum)
  }

  /// Stores the header and returns its length and checksum; `byteCountMax` bytes must be free.
  func encode(
    at place: UnsafeMutableRawPointer, offset: UInt64, segment: SegmentHeader
  ) -> (byteCount: Int, checksum: UInt32) {
    let end = isShort ? storeShort(at: place, segment) : storeFull(at: place, segment)
    // The offset is part of the seed: a header is valid at its own offset only, so that no copy of it, in a
    // payload or misdirected by the disk, is ever taken for a record.
    let checksum = Checksum.short(
      UnsafeRawBufferPointer(start: place, count: end), seed: segment.salt &+ offset)
    place.storeBytes(of: checksum.littleEndian, toByteOffset: end, as: UInt32.self)
    return (end &+ 4, checksum)
  }

  /// Stores what stands before the header's checksum, and returns its length.
  private func storeFull(at place: UnsafeMutableRawPointer, _ segment: SegmentHeader) -> Int {
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
    return end &+ 12
  }

  private func storeShort(at place: UnsafeMutableRawPointer, _ segment: SegmentHeader) -> Int {
    place.storeBytes(of: Self.shortMagic, as: UInt8.self)
    place.storeBytes(of: UInt8(sharedByteCount), toByteOffset: 1, as: UInt8.self)
    place.storeBytes(of: UInt8(storedByteCount), toByteOffset: 2, as: UInt8.self)
    var end = 3
    end &+= storeVarint(firstLSN.rawValue &- segment.firstLSN.rawValue, at: place + end)
    end &+= storeVarint(zigzag(baseTime &- segment.baseTime), at: place + end)
    place.storeBytes(
      of: UInt16(truncatingIfNeeded: previousChecksum).littleEndian, toByteOffset: end,
      as: UInt16.self)
    place.storeBytes(
      of: UInt32(truncatingIfNeeded: payloadChecksum).littleEndian, toByteOffset: end &+ 2,
      as: UInt32.self)
    return end &+ 6
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

/// A record and its offset.
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
