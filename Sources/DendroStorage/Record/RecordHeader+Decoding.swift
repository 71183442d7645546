extension RecordHeader {
  /// The result of decoding the bytes at a place.
  enum Decoded {
    case valid(RecordHeader, byteCount: Int, checksum: UInt32)
    case invalid(Fault)
  }

  /// Why the bytes at an offset are no header. Formatted only if it is reported.
  enum Fault: Error, Hashable, CustomStringConvertible {
    case truncated
    case noMagic
    case noLength
    case checksum(expected: UInt32, found: UInt32)
    case field(String)

    var expected: String {
      switch self {
      case .truncated: "a whole record header"
      case .noMagic: "record magic f5 52 or f6"
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
  /// The checksum is compared before any field is used. Bounded work whatever the bytes.
  static func decode(
    _ bytes: UnsafeRawBufferPointer, offset: UInt64, segment: SegmentHeader
  ) -> Decoded {
    do throws(Fault) {
      let fields = try Fields(bytes)
      let expected = Checksum.short(
        UnsafeRawBufferPointer(rebasing: bytes[..<(fields.byteCount - 4)]),
        seed: segment.salt &+ offset)
      guard fields.checksum == expected else {
        throw .checksum(expected: expected, found: fields.checksum)
      }
      return .valid(
        try fields.header(in: segment), byteCount: fields.byteCount, checksum: fields.checksum)
    } catch {
      return .invalid(error)
    }
  }

  /// Decodes a header without its checksum, which is right only if the header was written.
  static func decodeDisplaced(_ bytes: UnsafeRawBufferPointer, segment: SegmentHeader) -> (
    header: RecordHeader, byteCount: Int, checksum: UInt32
  )? {
    guard let fields = try? Fields(bytes), let header = try? fields.header(in: segment) else {
      return nil
    }
    return (header, fields.byteCount, fields.checksum)
  }

  /// The fields of a header as they stand in the file.
  private struct Fields {
    var flags: UInt8
    var stored: UInt64
    var raw: UInt64
    var lsnDelta: UInt64
    var count: UInt64
    var timeDelta: Int64
    var durableDelta: UInt64
    var previousChecksum: UInt32
    var payloadChecksum: UInt64
    var checksum: UInt32
    var byteCount: Int
    var isShort: Bool

    init(_ bytes: UnsafeRawBufferPointer) throws(Fault) {
      guard bytes.count >= shortByteCountMin else { throw .truncated }
      if bytes[0] == shortMagic {
        self = try Fields(short: bytes)
        return
      }
      guard bytes[0] == magic.0, bytes[1] == magic.1 else { throw .noMagic }
      guard bytes.count >= byteCountMin else { throw .truncated }
      isShort = false
      flags = bytes[2]
      var reader = ByteReader(bytes, at: 3)
      do throws(ByteError) {
        stored = try reader.varint()
        raw = flags & compressedFlag != 0 ? try reader.varint() : stored
        lsnDelta = try reader.varint()
        count = try reader.varint()
        timeDelta = try reader.signedVarint()
        durableDelta = try reader.varint()
        previousChecksum = try reader.uint32()
        payloadChecksum = try reader.uint64()
        checksum = try reader.uint32()
        byteCount = reader.offset
      } catch {
        if case .truncated = error { throw .truncated }
        throw .noLength
      }
    }

    private init(short bytes: UnsafeRawBufferPointer) throws(Fault) {
      isShort = true
      flags = RecordKind.writes.rawValue
      count = 1
      durableDelta = 0
      stored = UInt64(bytes[2])
      raw = UInt64(bytes[1]) + stored
      var reader = ByteReader(bytes, at: 3)
      do throws(ByteError) {
        lsnDelta = try reader.varint()
        timeDelta = try reader.signedVarint()
        previousChecksum = UInt32(try reader.uint16())
        payloadChecksum = UInt64(try reader.uint32())
        checksum = try reader.uint32()
        byteCount = reader.offset
      } catch {
        if case .truncated = error { throw .truncated }
        throw .noLength
      }
    }

    func header(in segment: SegmentHeader) throws(Fault) -> RecordHeader {
      guard let kind = RecordKind(rawValue: flags & 0x0F), flags & 0xC0 == 0 else {
        throw .field("a known kind and flags, not \(hexadecimal(flags))")
      }
      if isShort {
        guard stored > 0, raw <= UInt64(ShortPayload.byteCountMax) else {
          throw .field("a short record of 1 to \(ShortPayload.byteCountMax) bytes, not \(raw)")
        }
      }
      guard Compression.isPlausible(raw: raw, stored: stored) else {
        throw .field("lengths within the limits, not \(stored) stored of \(raw) raw")
      }
      let (first, firstOverflow) = segment.firstLSN.rawValue.addingReportingOverflow(lsnDelta)
      let (last, lastOverflow) = first.addingReportingOverflow(count)
      guard !firstOverflow, !lastOverflow, last <= UInt64(Int64.max), count <= raw else {
        throw .field("a count that the payload can hold, not \(count)")
      }
      guard durableDelta < first else {
        throw .field("a durable write before the record's first")
      }
      switch kind {
      case .writes:
        guard count > 0 else {
          throw .field("one write or more")
        }
      case .seal:
        guard count == 0 && flags == kind.rawValue && stored == UInt64(Seal.byteCount) else {
          throw .field("a seal of \(Seal.byteCount) bytes")
        }
      case .idle:
        guard count == 0 && flags == kind.rawValue && stored == 0 else {
          throw .field("an idle record without payload")
        }
      }
      return RecordHeader(
        kind: kind, isCompressed: flags & compressedFlag != 0, isRestart: flags & restartFlag != 0,
        storedByteCount: Int(stored), rawByteCount: Int(raw), firstLSN: LogSequenceNumber(first),
        count: Int(count), baseTime: segment.baseTime &+ timeDelta,
        durableUpTo: LogSequenceNumber(first &- 1 &- durableDelta),
        previousChecksum: previousChecksum, payloadChecksum: payloadChecksum,
        isShort: isShort)
    }
  }
}
