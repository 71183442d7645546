import DendroEngine
import DendroStorage
import DendroTesting
import DendroTree

extension Forgeries {
  /// The fields of a short record, and its payload.
  private struct ForgedShortRecord {
    var shared: UInt8
    var stored: [UInt8]
    var first: UInt64 = 2
    var previousChecksum: UInt32
    /// Of the shared bytes and the stored ones.
    var raw: [UInt8]

    func bytes(at offset: UInt64, salt: UInt64) -> [UInt8] {
      var bytes: [UInt8] = [0xf6, shared, UInt8(stored.count)] + varint(first) + varint(0)
      bytes += little(UInt16(truncatingIfNeeded: previousChecksum))
      let payload = raw.withUnsafeBytes { Checksum.xxh3($0, seed: salt) }
      bytes += little(UInt32(truncatingIfNeeded: payload))
      let checksum = bytes.withUnsafeBytes { Checksum.xxh3($0, seed: salt &+ offset) }
      return bytes + little(UInt32(truncatingIfNeeded: checksum)) + stored
    }
  }

  static let shortRecords: [Scenario] = [
    shortRecord("the same record", isGood: true) { _ in },
    shortRecord("a write left out") { $0.first = 3 },
    shortRecord("a write twice") { $0.first = 1 },
    shortRecord("another predecessor") { $0.previousChecksum ^= 1 },
    shortRecord("nothing stored") {
      $0.stored = []
      $0.shared = 9
      $0.raw = Array($0.raw.prefix(9))
    },
    shortRecord("more bytes than it may have") {
      $0.stored = Array(repeating: 7, count: 255)
      $0.raw = $0.raw.prefix(Int($0.shared)) + $0.stored
    },
    shortRecord("more shared bytes than there are") {
      $0.shared = 200
      $0.raw = Array(repeating: 0, count: 200) + $0.stored
    },
  ]

  /// The third of three records, forged: it is no part of the log.
  private static func shortRecord(
    _ name: String, isGood: Bool = false,
    _ forge: @escaping @Sendable (inout ForgedShortRecord) -> Void
  ) -> Scenario {
    Scenario("a short record: " + name) {
      let disk = SimulatedDisk(seed: 1)
      let directory = try DatabaseDirectory.open(
        EngineRecording.directory, environment: disk.environment, mode: .readWrite(create: true))
      let writer = try LogWriter.create(directory, databaseID: DatabaseID(disk.randomness), time: 1)
      for text in ["a long path one", "a long path two", "a long path and more"] {
        try writer.append([0, 1, 0] + Array(text.utf8), count: 1)
        try writer.synchronize()
      }
      var found: [RecordInfo] = []
      _ = try LogReader.read(directory) { record, _ in found.append(record) }
      guard found.count == 3 else { throw Violation("\(found.count) records") }
      let path = directory.path(of: found[2].segment)
      directory.close()
      guard let bytes = disk.contents(of: path) else { throw Violation("no segment") }
      let start = Int(found[2].offset)
      // What follows the record: the first byte, its path's length, comes last.
      let raw = Array(" long path and morea".utf8)
      let shared = Int(bytes[start + 1])
      var forged = ForgedShortRecord(
        shared: bytes[start + 1], stored: Array(raw[shared...]),
        previousChecksum: found[1].checksum, raw: raw)
      forge(&forged)
      let salt = bytes[32..<40].reversed().reduce(0) { $0 << 8 | UInt64($1) }
      let crashed = disk.copy()
      crashed.resize(path, to: start)
      crashed.overwrite(path, at: start, with: forged.bytes(at: found[2].offset, salt: salt))
      if isGood {
        // Behind it the writer took space ahead.
        let whole = crashed.contents(of: path) ?? []
        try require(whole == Array(bytes.prefix(whole.count)), "other bytes than were written")
      }
      try judge(crashed, writes: 3, isGood: isGood)
    }
  }
}
