/// Identifies the database that a file belongs to: drawn at random when the database is created.
package struct DatabaseID: Hashable, Sendable, CustomStringConvertible {
  package let high: UInt64
  package let low: UInt64

  package init(high: UInt64, low: UInt64) {
    self.high = high
    self.low = low
  }

  package init(_ randomness: any Randomness) {
    self.init(high: randomness.next(), low: randomness.next())
  }

  package var description: String { hexadecimal(high) + hexadecimal(low) }
}

/// The first 64 bytes of a segment; see <doc:LogFormat>.
package struct SegmentHeader: Hashable, Sendable {
  static let byteCount = 64
  static let magic: UInt64 = 0x0A67_6F4C_646E_4489  // 89 "DndLog" 0A in the order of the file

  package private(set) var format = FileFormat()
  package var databaseID: DatabaseID
  package var salt: UInt64
  package var firstLSN: LogSequenceNumber
  /// Milliseconds since 1970; the records' times count from here.
  package var baseTime: Int64
  /// The header checksum of the last record before the seal of the segment before; 0 in the first.
  package var previousChecksum: UInt32
  /// Over all of the above.
  package internal(set) var checksum: UInt32 = 0

  package init(
    databaseID: DatabaseID, salt: UInt64, firstLSN: LogSequenceNumber, baseTime: Int64,
    previousChecksum: UInt32, format: FileFormat = FileFormat()
  ) {
    self.format = format
    self.databaseID = databaseID
    self.salt = salt
    self.firstLSN = firstLSN
    self.baseTime = baseTime
    self.previousChecksum = previousChecksum
    var bytes = ByteWriter()
    writeFields(&bytes)
    checksum = Checksum.short(bytes.bytes, seed: 0)
  }

  func encode(into bytes: inout ByteWriter) {
    writeFields(&bytes)
    bytes.uint32(checksum)
  }

  /// The first of these base times with which the header has a checksum; nil if there is none.
  func baseTime(with checksum: UInt32, in times: ClosedRange<Int64>) -> Int64? {
    var header = self
    var bytes = ByteWriter()
    return times.first { time in
      header.baseTime = time
      bytes.removeAll()
      header.writeFields(&bytes)
      return Checksum.short(bytes.bytes, seed: 0) == checksum
    }
  }

  private func writeFields(_ bytes: inout ByteWriter) {
    bytes.fileHead(format, magic: Self.magic, databaseID, salt: salt, firstLSN, time: baseTime)
    bytes.uint32(previousChecksum)
  }

  /// - Parameter bytes: the file's first 64, or fewer if it ends before.
  init(decoding bytes: UnsafeRawBufferPointer, path: String) throws(StorageError) {
    var reader: FieldReader
    (reader, format) = try FileFormat.check(
      bytes, magic: Self.magic, byteCount: Self.byteCount, path: path)
    databaseID = DatabaseID(high: try reader.uint64(), low: try reader.uint64())
    salt = try reader.uint64()
    firstLSN = LogSequenceNumber(try reader.uint64())
    baseTime = Int64(bitPattern: try reader.uint64())
    previousChecksum = try reader.uint32()
    checksum = try reader.uint32()
    guard firstLSN > .zero else {
      throw .corrupt(path: path, offset: 40, expected: "a first LSN of 1 or more", found: "0")
    }
  }
}

func hexadecimal<I: FixedWidthInteger & UnsignedInteger>(_ value: I) -> String {
  let digits = String(value, radix: 16)
  return String(repeating: "0", count: max(0, I.bitWidth / 4 - digits.utf8.count)) + digits
}

func hexadecimal(_ bytes: some Sequence<UInt8>) -> String {
  let digits = bytes.map { hexadecimal($0) }.joined(separator: " ")
  return digits.isEmpty ? "nothing" : digits
}
