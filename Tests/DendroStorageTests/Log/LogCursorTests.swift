import DendroTestSupport
import DendroTesting
import Testing

@testable import DendroStorage

@Suite struct LogCursorTests {
  struct Scanned {
    var entries: [Entry] = []
    var undecodable: [UInt64] = []
    var problems: [LogCursor.Problem] = []
    var segments = 0

    /// What is no mere remains of a crash.
    var damage: [LogCursor.Problem] { problems.filter { !$0.isTail } }
  }

  static func scan(_ disk: SimulatedDisk) throws(StorageError) -> Scanned {
    let directory = try openReadOnly(disk)
    defer { directory.close() }
    var scanned = Scanned()
    let cursor = LogCursor(directory)
    while try cursor.step({ (item) throws(StorageError) in
      switch item {
      case .segment: scanned.segments += 1
      case .record(let record, _, let payload):
        guard record.kind == .writes else { return }
        if let payload {
          scanned.entries.append(
            Entry(
              firstLSN: record.firstLSN.rawValue, count: record.count, time: record.baseTime,
              payload: Array(payload)))
        } else {
          scanned.undecodable.append(record.firstLSN.rawValue)
        }
      case .problem(let problem): scanned.problems.append(problem)
      }
    }) {}
    return scanned
  }

  @Test("a cursor that is slower than the writer comes to its end")
  func fasterWriter() throws {
    let disk = SimulatedDisk(seed: 9)
    let directory = try open(disk)
    let writer = try newLog(directory)
    for number in 0..<4 { try writer.append(payload(number, 100)) }
    let reading = try openReadOnly(disk)
    defer { reading.close() }
    let cursor = LogCursor(reading)
    var lsns: [UInt64] = []
    var steps = 0
    while try cursor.step({ (item) throws(StorageError) in
      if case .record(let record, _, _?) = item, record.kind == .writes {
        lsns.append(record.lastLSN.rawValue)
      }
    }) {
      // Two segments more for each step.
      for _ in 0..<2 where steps < 20 {
        try writer.append(payload(steps, 100))
        try writer.roll(time: 1_704_067_200_000)
      }
      steps += 1
      try #require(steps < 100)
    }
    #expect(lsns.starts(with: [1, 2, 3, 4]) && lsns.count < 8, "\(lsns)")
    try writer.close()
    directory.close()
  }

  /// Three segments, an opening in the midst of the second, closed in order.
  static func sample() throws -> (SimulatedDisk, [Entry]) {
    let disk = SimulatedDisk(seed: 8)
    let directory = try open(disk)
    let writer = try newLog(directory)
    for number in 0..<8 {
      try writer.append(payload(number, 100))
      if number == 3 { try writer.roll(time: 1_704_067_200_000) }
    }
    directory.close()
    let (again, resumed, _) = try resume(disk)
    for number in 8..<16 {
      try resumed.append(number == 10 ? noise(50, seed: 1) : payload(number, 100))
      if number == 11 { try resumed.roll(time: 1_704_067_200_000) }
    }
    try resumed.close()
    again.close()
    return (disk, try #require(try read(disk)).entries)
  }

  @Test("a cursor reports the same records of an undamaged log as a reader")
  func clean() throws {
    let (disk, entries) = try Self.sample()
    let scanned = try Self.scan(disk)
    #expect(scanned.entries == entries && scanned.segments == 3)
    #expect(scanned.problems == [] && scanned.undecodable == [])
  }

  @Test("behind damage it continues at the next restart point, and names what is lost")
  func damage() throws {
    let (disk, entries) = try Self.sample()
    // The payload of write 6, in the second segment: 7 and 8 need it, 9 is a restart point.
    var offset = 0
    _ = try LogReader.read(openReadOnly(disk)) { (record, _) throws(StorageError) in
      if record.firstLSN.rawValue == 6 { offset = Int(record.offset) + record.headerByteCount }
    }
    let hurt = disk.copy()
    hurt.flipBit(offset * 8 + 3, of: segmentPath(5))
    let scanned = try Self.scan(hurt)
    #expect(!scanned.damage.isEmpty)
    #expect(scanned.undecodable.first == 6)
    #expect(scanned.entries.allSatisfy { entries.contains($0) })
    #expect(
      scanned.entries.count + scanned.undecodable.count == entries.count, "each is reported")

    // Its header: the record itself is not found, either.
    let headless = disk.copy()
    headless.flipBit((offset - 10) * 8, of: segmentPath(5))
    let found = try Self.scan(headless)
    #expect(!found.damage.isEmpty)
    #expect(found.entries.allSatisfy { entries.contains($0) })
    #expect(found.entries.suffix(8) == entries.suffix(8))

    // A whole segment.
    let gone = disk.copy()
    gone.erase(segmentPath(5))
    let rest = try Self.scan(gone)
    #expect(rest.entries == entries.filter { !(5...12).contains($0.firstLSN) })
    #expect(!rest.damage.isEmpty)
  }

  @Test("what a crash left at the end is no problem")
  func torn() throws {
    let (disk, entries) = try Self.sample()
    let path = segmentPath(13)
    let size = try #require(disk.contents(of: path)).count
    disk.resize(path, to: size - 50)
    let scanned = try Self.scan(disk)
    #expect(scanned.damage == [] && scanned.problems.count == 1)
    #expect(scanned.entries == Array(entries.dropLast()))
    let end = try #require(try read(openReadOnly(disk))).end
    #expect(end.unfinished != nil && end.torn == nil)
  }

  @Test(
    "a seal that a crash tore is no damage: its successor says that nothing is missing; behind a write there it is",
    arguments: [false, true])
  func tornSeal(isDurable: Bool) throws {
    let disk = SimulatedDisk(seed: 8)
    let directory = try open(disk)
    let writer = try newLog(directory)
    for number in 0..<3 { try writer.append(payload(number, 100)) }
    let end = try #require(disk.contents(of: segmentPath(1))).count
    try writer.roll(time: 1_704_067_200_000)
    if isDurable { try writer.append(payload(3, 100)) }
    directory.close()
    let entries = try #require(try read(disk.copy())).entries
    let whole = try #require(disk.contents(of: segmentPath(1))).count
    for size in end..<whole {
      let torn = disk.copy()
      torn.resize(segmentPath(1), to: size)
      let scanned = try Self.scan(torn)
      #expect(scanned.entries == entries && scanned.segments == 2)
      #expect(scanned.problems.count == (size == end ? 0 : 1), "\(size)")
      #expect(scanned.damage.isEmpty == (size == end || !isDurable), "\(size)")
      #expect(try read(torn)?.entries == entries)
    }
    // A record that is missing is: the successor follows another one.
    let short = disk.copy()
    short.resize(segmentPath(1), to: end - 20)
    #expect(try Self.scan(short).damage != [])
  }

  @Test(
    "random damage: never a trap, never another payload, nothing missing without a word",
    arguments: 0..<8)
  func randomDamage(seed: Int) throws {
    let (disk, entries) = try Self.sample()
    var random = SeededRandomness(seed: UInt64(seed))
    for _ in 0..<400 {
      let hurt = disk.copy()
      let names = hurt.names(in: root).filter { $0.hasSuffix(".log") }
      for _ in 0..<Int.random(in: 1...4, using: &random) {
        let path = root + "/" + names.randomElement(using: &random)!
        let size = hurt.contents(of: path)?.count ?? 0
        if size == 0 { continue }
        let place = Int.random(in: 0..<size, using: &random)
        switch Int.random(in: 0..<6, using: &random) {
        case 0: hurt.resize(path, to: place)
        case 1:
          hurt.overwrite(
            path, at: place,
            with: noise(Int.random(in: 1...60, using: &random), seed: random.next()))
        case 2:
          let other = hurt.contents(of: root + "/" + names.randomElement(using: &random)!) ?? []
          let from = Int.random(in: 0...other.count, using: &random)
          hurt.overwrite(path, at: place, with: Array(other[from...].prefix(200)))
        case 3:
          hurt.overwrite(
            path, at: place,
            with: Array(repeating: 0, count: Int.random(in: 1...512, using: &random)))
        case 4 where Int.random(in: 0..<8, using: &random) == 0: hurt.erase(path)
        default: hurt.flipBit(place * 8 + Int.random(in: 0..<8, using: &random), of: path)
        }
      }
      let scanned: Scanned
      do throws(StorageError) {
        scanned = try Self.scan(hurt)
      } catch {
        // A version that is not ours is refused as such, whatever made it so.
        guard case .unsupportedVersion = error else { throw error }
        continue
      }
      #expect(scanned.entries.allSatisfy { entries.contains($0) })
      var readEntries: [Entry]?
      do throws(StorageError) {
        if let log = try read(hurt) {
          readEntries = log.entries
          #expect(Array(entries.prefix(log.entries.count)) == log.entries)
        }
      } catch {
        if error.isDamage {
        } else if case .unsupportedVersion = error {
        } else {
          Issue.record("\(error)")
        }
        // That the log should begin earlier, a checkpoint or its absence says, not the log.
        if disk.names(in: root).filter({ $0.hasSuffix(".log") }).min()
          == hurt.names(in: root).filter({ $0.hasSuffix(".log") }).min()
        {
          #expect(!scanned.problems.isEmpty, "reading: \(error)")
        }
      }
      if let readEntries {
        #expect(scanned.entries.starts(with: readEntries))
        #expect(scanned.entries.count == readEntries.count || !scanned.problems.isEmpty)
      }
    }
  }
}
