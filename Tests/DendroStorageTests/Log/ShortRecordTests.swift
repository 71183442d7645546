import DendroTestSupport
import DendroTesting
import Testing

@testable import DendroStorage

/// Which records are short, and what is refused in one.
@Suite("Short records")
struct ShortRecordTests {
  /// The records of a log of one segment, as their headers say.
  private static func headers(_ disk: SimulatedDisk) throws -> [RecordInfo] {
    let directory = try open(disk)
    defer { directory.close() }
    var records: [RecordInfo] = []
    _ = try LogReader.read(directory, after: .zero, provenDurable: .zero) {
      (record, _) throws(StorageError) in
      records.append(record)
    }
    return records
  }

  private static func set(_ count: Int) -> [UInt8] { [0, 1, 0] + noise(count, seed: 3) }

  @Test("a set of up to 255 bytes that follows durable writes is short; anything else is not")
  func forms() throws {
    let disk = SimulatedDisk()
    let directory = try open(disk)
    let writer = try newLog(directory)
    var payloads: [[UInt8]] = []
    var isShort: [Bool] = []
    func append(_ payload: [UInt8], count: Int = 1, durably: Bool = true, _ expected: Bool) throws {
      try writer.append(payload, count: count, durably: durably)
      payloads.append(payload)
      isShort.append(expected)
    }
    // The history begins with a full record.
    try append(Self.set(10), false)
    for (payload, count, expected) in [
      (Self.set(1), 1, true), (Self.set(254), 1, true), (Self.set(255), 1, true),
      (Self.set(256), 1, false), ([0, 1, 0], 1, false), (Self.set(20), 2, false),
      ([0, 2, 0] + noise(9, seed: 1), 1, false), ([1, 1, 0] + noise(9, seed: 1), 1, false),
      ([0, 1, 1] + noise(9, seed: 1), 1, false), ([7], 1, false),
      ([0, 1, 0] + Array(repeating: 7, count: 255), 1, true),
    ] {
      try append(payload, count: count, expected)
    }
    // The second of two that wait for one synchronize.
    for expected in [true, false] { try append(Self.set(5), durably: false, expected) }
    try writer.close()
    directory.close()
    let records = try Self.headers(disk)
    #expect(records.map(\.header.isShort) == isShort)
    #expect(try read(disk)?.entries.map(\.payload) == payloads)
    for record in records where record.header.isShort {
      #expect(record.durableUpTo == record.firstLSN.previous)
      // Magic, lengths, LSN, time, checksums.
      #expect(record.headerByteCount == 3 + 1 + 1 + 10)
    }
  }

  @Test("a record of a new opening is full, and so is one whose history does not fit")
  func restarts() throws {
    let disk = SimulatedDisk()
    let directory = try open(disk)
    let writer = try newLog(directory)
    for number in 0..<9_000 {
      try writer.append([0, 1, 0] + noise(255, seed: UInt64(number)))
    }
    try writer.close()
    directory.close()
    let (again, resumed, _) = try resume(disk)
    try resumed.append(Self.set(5))
    try resumed.append(Self.set(5))
    try resumed.close()
    again.close()
    let records = try Self.headers(disk)
    let full = records.filter { !$0.header.isShort }
    #expect(full.count { $0.header.isRestart } == full.count)
    let lsns = full.map(\.firstLSN.rawValue)
    #expect(lsns.count == 4 && lsns.first == 1 && lsns.last == 9_001)
    for (record, next) in zip(full, full.dropFirst()).dropLast() {
      let byteCount = Int(next.offset - record.endOffset)
      #expect(byteCount >= 1 << 20 && byteCount < (1 << 20) + 300)
    }
    // The first one behind a restart shares nothing; others share all that they can.
    let second = try #require(records.last)
    #expect(second.header.isShort && second.header.sharedByteCount == 0)
  }

  @Test("a segment of version 0 gets full records only, and the next one short ones")
  func olderVersion() throws {
    let disk = SimulatedDisk()
    let directory = try open(disk)
    let writer = try newLog(directory)
    writer.segment = SegmentHeader(
      databaseID: writer.segment.databaseID, salt: writer.segment.salt,
      firstLSN: writer.segment.firstLSN, baseTime: writer.segment.baseTime, previousChecksum: 0,
      format: FileFormat(version: 0))
    var bytes = ByteWriter()
    writer.segment.encode(into: &bytes)
    disk.overwrite(segmentPath(1), at: 0, with: Array(bytes.bytes))
    writer.checksum = writer.segment.checksum
    writer.stagedChecksum = writer.segment.checksum
    for _ in 0..<3 { try writer.append(Self.set(5)) }
    try writer.close()
    directory.close()
    let (again, resumed, _) = try resume(disk)
    #expect(resumed.segment.format.version == 0)
    for _ in 0..<3 { try resumed.append(Self.set(5)) }
    try resumed.roll(time: 1_704_067_200_000)
    #expect(resumed.segment.format.version == 1)
    for _ in 0..<3 { try resumed.append(Self.set(5)) }
    try resumed.close()
    again.close()
    #expect(
      try Self.headers(disk).map(\.header.isShort) == [
        false, false, false, false, false, false, false, true, true,
      ])
  }

  @Test(
    "what a set has in common with the one before is not stored, whatever the length of its path")
  func sharing() throws {
    let disk = SimulatedDisk()
    let directory = try open(disk)
    let writer = try newLog(directory)
    var payloads: [[UInt8]] = []
    for (key, value) in [
      ("one", "a"), ("one", "a"), ("three", "a"), ("three", "b"), ("four", "b"), ("f", "b"),
    ] {
      let path = [5] + bytes("posts") + [UInt8(key.utf8.count)] + bytes(key)
      let payload = [0, 1, 0, UInt8(path.count)] + path + [0x81] + bytes(value)
      try writer.append(payload)
      payloads.append(payload)
    }
    try writer.close()
    directory.close()
    #expect(try read(disk)?.entries.map(\.payload) == payloads)
    #expect(try Self.headers(disk).map(\.header.sharedByteCount) == [0, 0, 6, 13, 6, 6])
  }

  @Test("the first one in each 64 KiB of the file shares nothing")
  func pieces() throws {
    let disk = SimulatedDisk()
    let directory = try open(disk)
    let writer = try newLog(directory)
    for number in 0..<12_000 {
      try writer.append([0, 1, 0] + bytes("a long beginning \(100_000 + number)"))
    }
    try writer.close()
    directory.close()
    let records = try Self.headers(disk).filter(\.header.isShort)
    var pieces = Set<UInt64>()
    for record in records {
      let isFirst = pieces.insert(record.offset >> 16).inserted
      #expect((record.header.sharedByteCount == 0) == isFirst, "at \(record.offset)")
    }
    #expect(pieces.count > 3)
    #expect(try read(disk)?.entries.count == 12_000)
  }

  @Test("no payload, or one longer than a short record has, is refused under a right checksum")
  func forged() throws {
    let disk = SimulatedDisk()
    let directory = try open(disk)
    let writer = try newLog(directory)
    try writer.append(Self.set(5))
    directory.close()
    let end = try #require(try read(disk)).end
    for (payload, raw) in [([] as [UInt8], nil as Int?), ([], 1), ([9, 9], 256)] {
      let forged = disk.copy()
      forged.overwrite(
        segmentPath(1), at: Int(end.offset),
        with: forgedRecord(
          behind: end, firstLSN: 2, payload: payload, rawByteCount: raw, isShort: true))
      let problems = try LogCursorTests.scan(forged).problems
      #expect(
        problems.first?.expected.hasPrefix("a short record of 1 to 255 bytes") == true
          || problems.first?.expected.hasPrefix("lengths within the limits") == true,
        "\(payload.count) stored of \(String(describing: raw)): \(problems)")
    }
    // The bytes that a record needs at least, cut at each of them.
    let whole = forgedRecord(behind: end, firstLSN: 2, payload: [1, 65, 17, 1, 2], isShort: true)
    for count in 0...whole.count {
      let cut = disk.copy()
      cut.overwrite(segmentPath(1), at: Int(end.offset), with: Array(whole.prefix(count)))
      let log = try #require(try read(cut))
      #expect(log.lastLSN == (count == whole.count ? 2 : 1))
      if count == whole.count { #expect(log.entries.last?.payload == [0, 1, 0, 2, 1, 65, 17, 1]) }
    }
  }

  @Test("a damaged payload costs its own record and those that share the damaged byte")
  func damagedPayload() throws {
    let disk = SimulatedDisk()
    let directory = try open(disk)
    let writer = try newLog(directory)
    // Each shares its first bytes with the one before it: 0, 0, 3, 8, 8, 2.
    for text in ["full", "abcdefgh", "abcdefghij", "abcdefghijkl", "abcdefghij", "abxy"] {
      try writer.append([0, 1, 0] + bytes(text))
    }
    try writer.close()
    directory.close()
    let records = try Self.headers(disk)
    let payloads = try #require(try read(disk)).entries.map(\.payload)
    for (index, record) in records.enumerated() where record.header.isShort {
      for byte in 0..<record.header.storedByteCount {
        let hurt = disk.copy()
        hurt.flipBit(
          (Int(record.offset) + record.headerByteCount + byte) * 8 + 1, of: segmentPath(1))
        // Where the damaged byte is in the payload, and which of the next records still take it over.
        let place = record.header.sharedByteCount + byte
        var expected = [record.firstLSN.rawValue]
        for next in records[(index + 1)...] {
          guard next.header.sharedByteCount > place else { break }
          expected.append(next.firstLSN.rawValue)
        }
        let scanned = try LogCursorTests.scan(hurt)
        #expect(scanned.undecodable == expected, "byte \(byte) of record \(index)")
        for entry in scanned.entries {
          #expect(entry.payload == payloads[Int(entry.firstLSN) - 1])
        }
        #expect(scanned.entries.count + expected.count == payloads.count)
      }
    }
    #expect(records.map(\.header.sharedByteCount).max() ?? 0 >= 8)
  }

  @Test("the bytes of a short record are named")
  func annotated() throws {
    let disk = SimulatedDisk()
    try FormatExampleTests.writeLog(disk)
    let directory = try openReadOnly(disk)
    let record = try AnnotatedRecord(
      at: 0x82, of: SegmentName(firstLSN: LogSequenceNumber(1)), in: directory)
    #expect(record.problem == nil && record.payload == 0x92..<0x99)
    #expect(
      record.fields.map { "\($0.name): \($0.value)" } == [
        "magic: a short record's", "shared length: 0", "stored length: 7", "first LSN: 1 + 3 = 4",
        "base time: 1700000000000 + 301 = 1700000000301", "previous checksum: 9d67",
        "payload checksum: 73dec881", "header checksum: 01026e36",
      ])
  }

  @Test("every place of either of two bytes is found, in order")
  func search() {
    var random = SeededRandomness(seed: 5)
    for _ in 0..<200 {
      let bytes = (0..<Int.random(in: 0...40, using: &random)).map { _ in
        UInt8.random(in: 0...3, using: &random)
      }
      let end = Int.random(in: 0...bytes.count, using: &random)
      bytes.withUnsafeBytes { raw in
        var search = ByteSearch(for: (1, 2), in: raw, to: end)
        var found: [Int] = []
        while let place = search.next() { found.append(place) }
        #expect(found == (0..<end).filter { bytes[$0] == 1 || bytes[$0] == 2 })
      }
    }
  }
}
