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
      let texts = ["a long path one", "a long path two", "a long path and more"]
      let log = try LoggedRecords(texts.map { [0, 1, 0] + Array($0.utf8) })
      let last = log.records[2]
      let start = Int(last.offset)
      // What stands behind the prefix: the first byte, its path's length, comes last.
      let raw = Array(" long path and morea".utf8)
      let shared = Int(log.bytes[start + 1])
      var forged = ForgedShortRecord(
        shared: log.bytes[start + 1], stored: Array(raw[shared...]),
        previousChecksum: log.records[1].checksum, raw: raw)
      forge(&forged)
      let crashed = log.disk.copy()
      crashed.resize(log.path, to: start)
      crashed.overwrite(log.path, at: start, with: forged.bytes(at: last.offset, salt: log.salt))
      if isGood {
        // Behind it the writer took space ahead.
        let whole = crashed.contents(of: log.path) ?? []
        try require(whole == Array(log.bytes.prefix(whole.count)), "other bytes than were written")
      }
      try judge(crashed, writes: 3, isGood: isGood)
    }
  }
}
