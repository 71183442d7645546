/// The bytes of a record's header, or of a segment's, field by field; see <doc:LogFormat>. For tools.
package struct AnnotatedRecord: Sendable {
  package struct Field: Sendable {
    /// In the file.
    package var offset: UInt64
    package var bytes: [UInt8]
    package var name: String
    package var value: String
  }

  package private(set) var fields: [Field] = []
  /// Why the bytes are no valid header; nil if they are.
  package private(set) var problem: String?
  /// Where the payload lies in the file; nil for the header of a segment.
  package private(set) var payload: Range<UInt64>?

  /// The header of a segment.
  ///
  /// - Throws: `.corrupt` if it cannot be read; `.io`.
  package init(headerOf name: SegmentName, in directory: DatabaseDirectory) throws(StorageError) {
    let segment = try SegmentReader(name, in: directory, isOwn: false)
    let header = segment.header
    let bytes = Array(try segment.bytes(at: 0, count: SegmentHeader.byteCount).prefix(64))
    let values: [(Int, String, String)] = [
      (8, "magic", "89 \"DndLog\" 0a"), (4, "format version", "\(header.format.version)"),
      (4, "features", hexadecimal(header.format.features)),
      (16, "database id", "\(header.databaseID)"),
      (8, "salt", hexadecimal(header.salt)), (8, "first LSN", "\(header.firstLSN)"),
      (8, "base time", "\(header.baseTime)"),
      (4, "previous checksum", hexadecimal(header.previousChecksum)),
      (4, "header checksum", hexadecimal(header.checksum)),
    ]
    var offset = 0
    for (count, name, value) in values {
      fields.append(
        Field(
          offset: UInt64(offset), bytes: Array(bytes[offset..<(offset + count)]), name: name,
          value: value))
      offset += count
    }
  }

  /// The record at an offset, as much of it as can be read.
  ///
  /// - Throws: `.corrupt` if the segment's header cannot be read; `.io`.
  package init(at start: UInt64, of name: SegmentName, in directory: DatabaseDirectory)
    throws(StorageError)
  {
    let segment = try SegmentReader(name, in: directory, isOwn: false)
    let bytes = Array(
      try segment.bytes(at: start, count: RecordHeader.byteCountMax).prefix(
        RecordHeader.byteCountMax))
    do {
      try read(bytes, start, segment.header)
    } catch {
      problem = "the header ends: \(error)"
    }
    if case .invalid(let fault) = try segment.record(at: start) {
      problem = "expected \(fault.expected), found \(fault.description)"
    }
  }

  private mutating func read(
    _ bytes: [UInt8], _ start: UInt64, _ segment: SegmentHeader
  ) throws {
    var stored: UInt64 = 0
    var end = 0
    var fields: [Field] = []
    try bytes.withUnsafeBytes { raw in
      var reader = ByteReader(raw)
      func add(_ name: String, from offset: Int, to end: Int, _ value: String) {
        fields.append(
          Field(
            offset: start + UInt64(offset), bytes: Array(raw[offset..<end]), name: name,
            value: value))
      }
      defer { self.fields = fields }
      func varint(_ name: String, _ describe: (UInt64) -> String) throws -> UInt64 {
        let offset = reader.offset
        let value = try reader.varint()
        add(name, from: offset, to: reader.offset, describe(value))
        return value
      }
      func addFirstLSN() throws -> UInt64 {
        try varint("first LSN") {
          "\(segment.firstLSN) + \($0) = \(segment.firstLSN.rawValue &+ $0)"
        }
      }
      func addBaseTime() throws {
        let offset = reader.offset
        let time = try reader.signedVarint()
        add(
          "base time", from: offset, to: reader.offset,
          "\(segment.baseTime) + \(time) = \(segment.baseTime &+ time)")
      }
      func addChecksums(_ byteCounts: [(String, Int)]) throws {
        for (name, count) in byteCounts {
          let offset = reader.offset
          let value =
            switch count {
            case 2: hexadecimal(try reader.uint16())
            case 4: hexadecimal(try reader.uint32())
            default: hexadecimal(try reader.uint64())
            }
          add(name, from: offset, to: reader.offset, value)
        }
        end = reader.offset
      }
      if bytes.first == RecordHeader.shortMagic {
        _ = try reader.uint8()
        add("magic", from: 0, to: 1, "a short record's")
        add("shared length", from: 1, to: 2, "\(try reader.uint8())")
        stored = UInt64(try reader.uint8())
        add("stored length", from: 2, to: 3, "\(stored)")
        _ = try addFirstLSN()
        try addBaseTime()
        return try addChecksums([
          ("previous checksum", 2), ("payload checksum", 4), ("header checksum", 4),
        ])
      }
      let magic = (try reader.uint8(), try reader.uint8())
      add("magic", from: 0, to: 2, magic == RecordHeader.magic ? "\"\u{F5}R\"" : "not a record's")
      let flags = try reader.uint8()
      add("kind and flags", from: 2, to: 3, Self.describe(flags))
      stored = try varint("stored length") { "\($0)" }
      if flags & RecordHeader.compressedFlag != 0 { _ = try varint("raw length") { "\($0)" } }
      let delta = try addFirstLSN()
      _ = try varint("count") { "\($0)" }
      try addBaseTime()
      _ = try varint("durable up to") {
        "LSN - 1 - \($0) = \(segment.firstLSN.rawValue &+ delta &- 1 &- $0)"
      }
      try addChecksums([
        ("previous checksum", 4), ("payload checksum", 8), ("header checksum", 4),
      ])
    }
    let first = start + UInt64(end)
    payload = first..<(first &+ stored < first ? first : first &+ stored)
  }

  private static func describe(_ flags: UInt8) -> String {
    let kind =
      switch RecordKind(rawValue: flags & 0x0F) {
      case .writes: "writes"
      case .seal: "seal"
      case .idle: "idle"
      case nil: "unknown kind \(flags & 0x0F)"
      }
    var words = [kind]
    if flags & RecordHeader.compressedFlag != 0 { words.append("compressed") }
    if flags & RecordHeader.restartFlag != 0 { words.append("restart") }
    return words.joined(separator: ", ")
  }

  /// Bytes of a segment.
  package static func bytes(
    _ range: Range<UInt64>, of name: SegmentName, in directory: DatabaseDirectory
  ) throws(StorageError) -> [UInt8] {
    let segment = try SegmentReader(name, in: directory, isOwn: false)
    let count = Int(clamping: range.upperBound - range.lowerBound)
    return Array(try segment.bytes(at: range.lowerBound, count: count).prefix(count))
  }
}
