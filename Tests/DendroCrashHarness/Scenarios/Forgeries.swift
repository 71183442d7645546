import DendroEngine
import DendroStorage
import DendroTesting
import DendroTree

/// Files with a wrong field under right checksums, as a bug or an attacker who knows the format would write
/// them. Checksums do not help here; each field needs a rule of its own.
package enum Forgeries {
  package static let scenarios = records + headers + checkpoints + shortRecords

  // MARK: Records

  /// The fields of a record's header, and its payload.
  struct ForgedRecord {
    var flags: UInt8
    /// Stored and raw size, first LSN less the segment's, count, time, how far back durable: as they
    /// stand in the file.
    var stored: [UInt8]
    var raw: [UInt8] = []
    var first: [UInt8]
    var count: [UInt8]
    var time: [UInt8]
    var durable: [UInt8]
    var previousChecksum: UInt32
    var payloadChecksum: UInt64
    var payload: [UInt8]

    func bytes(at offset: UInt64, salt: UInt64) -> [UInt8] {
      var bytes: [UInt8] = [0xf5, 0x52, flags] + stored + raw + first + count + time + durable
      bytes += little(previousChecksum) + little(payloadChecksum)
      let checksum = bytes.withUnsafeBytes { Checksum.xxh3($0, seed: salt &+ offset) }
      return bytes + little(UInt32(truncatingIfNeeded: checksum)) + payload
    }
  }

  static func little<I: FixedWidthInteger>(_ value: I) -> [UInt8] {
    withUnsafeBytes(of: value.littleEndian) { [UInt8]($0) }
  }

  static func varint(_ value: UInt64) -> [UInt8] {
    var writer = ByteWriter()
    writer.varint(value)
    return [UInt8](writer.bytes)
  }

  private static let records: [Scenario] = [
    record("the same record", isGood: true) { _ in },
    record("a write left out") {
      $0.first = varint(2); $0.durable = varint(1)
    },
    record("a write twice") {
      $0.first = varint(0); $0.durable = varint(0)
    },
    record("another predecessor") { $0.previousChecksum ^= 1 },
    record("an unknown flag") { $0.flags |= 0x40 },
    record("an idle record with writes") {
      $0.flags = 3
      $0.count = varint(4)
    },
    record("an enormous size") {
      $0.flags = 0x31
      $0.raw = varint(1 << 60)
    },
    record("a size no block can hold") {
      $0.flags = 0x31
      $0.raw = varint(250 << 20)
    },
    record("no writes") { $0.count = varint(0) },
    record("more writes than bytes") { $0.count = varint(1 << 40) },
    record("durable from the future") { $0.durable = varint(5) },
    record("a varint that could be shorter") { $0.count = [0x81, 0] },
    record("a varint over 64 bits") {
      $0.time = [0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 2]
    },
  ]

  /// The second of two records, forged: it is no part of the log.
  private static func record(
    _ name: String, isGood: Bool = false, _ forge: @escaping @Sendable (inout ForgedRecord) -> Void
  ) -> Scenario {
    Scenario("a record: " + name) {
      let log = try LoggedRecords([Array("1 anything".utf8), Array("2 anything".utf8)])
      let last = log.records[1]
      let old = last.header
      let start = Int(last.offset)
      let payload = Array(log.bytes[start + last.headerByteCount..<Int(last.endOffset)])
      var forged = ForgedRecord(
        flags: log.bytes[start + 2], stored: varint(UInt64(old.storedByteCount)), first: varint(1),
        count: varint(1), time: varint(0), durable: varint(0),
        previousChecksum: old.previousChecksum, payloadChecksum: old.payloadChecksum,
        payload: payload)
      forge(&forged)
      let crashed = log.disk.copy()
      crashed.overwrite(log.path, at: start, with: forged.bytes(at: last.offset, salt: log.salt))
      try judge(crashed, writes: 2, isGood: isGood)
    }
  }

  /// A log of some records of one write each, and if they stand in its only segment.
  struct LoggedRecords {
    let disk = SimulatedDisk(seed: 1)
    var records: [RecordInfo] = []
    let path: String
    let bytes: [UInt8]

    init(_ payloads: [[UInt8]]) throws {
      let directory = try DatabaseDirectory.open(
        EngineRecording.directory, environment: disk.environment, mode: .readWrite(create: true))
      defer { directory.close() }
      let writer = try LogWriter.create(directory, databaseID: DatabaseID(disk.randomness), time: 1)
      for payload in payloads {
        try writer.append(payload, count: 1)
        try writer.synchronize()
      }
      var found: [RecordInfo] = []
      _ = try LogReader.read(directory) { record, _ in found.append(record) }
      records = found
      guard found.count == payloads.count else { throw Violation("\(found.count) records") }
      path = directory.path(of: found[0].segment)
      guard let bytes = disk.contents(of: path) else { throw Violation("no segment") }
      self.bytes = bytes
    }

    var salt: UInt64 { bytes[32..<40].reversed().reduce(0) { $0 << 8 | UInt64($1) } }
  }

  /// Reads as tools do: the last of so many writes is there if it is good, and only then.
  static func judge(_ crashed: SimulatedDisk, writes: Int, isGood: Bool) throws {
    let reading = try DatabaseDirectory.open(
      EngineRecording.directory, environment: crashed.environment, mode: .readOnly)
    defer { reading.close() }
    let before = LogSequenceNumber(UInt64(writes - 1))
    var visited = 0
    var last = LogSequenceNumber.zero
    do throws(StorageError) {
      last = try LogReader.read(reading) { _, _ in visited += 1 }?.lastLSN ?? .zero
    } catch {
      guard case .corrupt = error else { throw Violation("refused as \(error)") }
      last = before
    }
    if isGood { return try require(visited == writes, "\(visited) records were read") }
    try require(visited < writes && last <= before, "was read, up to write \(last)")
  }

  // MARK: Headers of files

  private static let headers: [Scenario] = [
    header("a format of the future", at: 8, UInt8(FileFormat.newestVersion) + 1) {
      if case .storage(.unsupportedVersion) = $0 { true } else { false }
    },
    header("bits that version 0 does not have", version: 0, at: 12, 1) {
      if case .storage(.corrupt) = $0 { true } else { false }
    },
    header("a feature that only later versions can read", at: 12, 0x80) {
      if case .storage(.unsupportedFeatures(_, 0x80, isReadable: false)) = $0 {
        true
      } else {
        false
      }
    },
    header("a feature that only later versions can write", at: 13, 1, isReadable: true) {
      if case .storage(.unsupportedFeatures(_, 0x100, isReadable: true)) = $0 {
        true
      } else {
        false
      }
    },
    Scenario("a segment: a feature that may be ignored") {
      let disk = try forged(at: 14, 1)
      try EngineRecording.open(disk).close()
    },
  ]

  private static func header(
    _ name: String, version: UInt8? = nil, at place: Int, _ value: UInt8, isReadable: Bool = false,
    _ isRight: @escaping @Sendable (EngineError) -> Bool
  ) -> Scenario {
    Scenario("a segment: " + name) {
      let disk = try forged(version: version, at: place, value)
      let error = try requireError("served") { () throws(EngineError) in
        try EngineRecording.open(disk)
      }
      try require(isRight(error), "refused as \(error)")
      if isReadable {
        try Engine.open(
          at: EngineRecording.directory, options: EngineRecording.options(),
          environment: disk.environment, mode: .readOnly
        ).close()
      }
    }
  }

  /// A database whose only segment has another header, under a right checksum.
  private static func forged(
    version: UInt8? = nil, at place: Int, _ value: UInt8
  ) throws -> SimulatedDisk {
    let disk = SimulatedDisk(seed: 1)
    // Nothing else in it: records repeat the header's checksum.
    try EngineRecording.open(disk).close()
    guard let path = disk.segmentPaths.last, var bytes = disk.contents(of: path) else {
      throw Violation("no segment")
    }
    if let version { bytes[8] = version }
    bytes[place] = value
    let checksum = bytes[..<60].withUnsafeBytes { Checksum.xxh3($0, seed: 0) }
    let words = little(UInt32(truncatingIfNeeded: checksum))
    bytes.replaceSubrange(60..<64, with: words)
    // The idle record of closing, which repeats the header's checksum, is cut.
    disk.resize(path, to: 64)
    disk.overwrite(path, at: 0, with: Array(bytes[..<64]))
    return disk
  }
}
