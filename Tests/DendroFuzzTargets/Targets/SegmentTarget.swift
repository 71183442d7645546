import DendroEngine
import DendroStorage
import DendroTesting

extension FuzzTarget {
  /// One byte of flags, two with the place where a live reader is held up, then a segment.
  static let segment = FuzzTarget(
    "segment", "one segment of a log: the reader of recovery and the cursor of the tools",
    weight: 50,
    seeds: {
      var seeds: [[UInt8]] = []
      for file in try SeedDatabases.all().joined() where file.name.hasSuffix(".log") {
        for flags in [UInt8(0), 3, 7] { seeds.append([flags, 100, 0] + file.bytes) }
      }
      return seeds
    },
    body: { bytes in
      var input = FuzzInput(bytes)
      let flags = input.uint8()
      let cut = Int(input.uint16())
      var segment = input.remaining()
      let lsn = segment.integer(at: 40, as: UInt64.self) ?? 1
      if flags & 1 != 0 {
        var log = [(lsn: lsn, bytes: segment)]
        Mending.log(&log, chained: flags & 2 != 0)
        segment = log[0].bytes
      }
      let name = FuzzDisk.segment(lsn)
      let disk = try FuzzDisk.make([(name, segment)])
      try SegmentReading.compare(disk)
      if flags & 4 != 0 { try SegmentReading.follow(segment, name, cut: cut) }
    })
}

/// The two readers of a log, which have to see the same.
enum SegmentReading {
  private struct Seen: Equatable {
    var record: RecordInfo
    var payload: [UInt8]
  }

  /// What recovery replays, the cursor shows; what both can decode has a round trip.
  static func compare(_ disk: SimulatedDisk) throws {
    guard let directory = FuzzDisk.open(disk) else { return }
    defer { directory.close() }
    var shown: [Seen] = []
    let cursor = LogCursor(directory)
    while attempt({ () throws(StorageError) in
      try cursor.step { item in
        guard case .record(let record, _, let payload?) = item else { return }
        shown.append(Seen(record: record, payload: Array(payload)))
      }
    }) == true {}
    var replayed: [Seen] = []
    _ = attempt { () throws(StorageError) in
      try LogReader.read(directory) { record, payload in
        replayed.append(Seen(record: record, payload: Array(payload)))
      }
    }
    for seen in replayed where seen.record.kind == .writes {
      try require(
        shown.contains(seen),
        "recovery replays write \(seen.record.firstLSN), which the cursor does not show")
    }
    for seen in shown where seen.record.kind == .writes {
      let writes = seen.payload.withUnsafeBytes { RecordWrites(seen.record, $0).writes }
      try WriteComparison.roundTrip(writes, baseTime: seen.record.baseTime)
    }
  }

  /// A reader beside a writer sees a part first, the rest later.
  static func follow(_ segment: [UInt8], _ name: String, cut: Int) throws {
    let part = Array(segment.prefix(max(64, cut)))
    let disk = try FuzzDisk.make([(name, part)])
    guard let directory = FuzzDisk.open(disk) else { return }
    defer { directory.close() }
    let cursor = LogCursor(directory, isLive: true)
    let steps = { attempt { () throws(StorageError) in try cursor.step { _ in } } == true }
    while steps() {}
    if part.count < segment.count {
      disk.overwrite(
        "\(FuzzDisk.directory)/\(name)", at: part.count, with: Array(segment[part.count...]))
    }
    // A live reader that finds damage looks again and again; it need not come to an end by itself.
    for _ in 0..<64 where !steps() { break }
  }
}
