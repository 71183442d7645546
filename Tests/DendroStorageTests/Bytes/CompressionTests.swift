import DendroTestSupport
import DendroTesting
import Testing

@testable import DendroStorage

@Suite struct CompressionTests {
  /// A block as the log would store it.
  struct Block {
    var stored: [UInt8]
    var isCompressed: Bool
    var isRestart: Bool
    var rawByteCount: Int
  }

  private func encode(_ payloads: [[UInt8]], restartAt: Set<Int> = []) -> [Block] {
    var compressor = HistoryCompressor()
    var target = RawBuffer()
    return payloads.enumerated().map { index, payload in
      if restartAt.contains(index) { compressor.restart() }
      target.reserve(Compression.bound(payload.count))
      let (count, isRestart) = payload.withUnsafeBytes {
        compressor.compress($0, into: target.base)
      }
      let stored =
        count > 0 ? Array(UnsafeRawBufferPointer(start: target.base, count: count)) : payload
      return Block(
        stored: stored, isCompressed: count > 0, isRestart: isRestart,
        rawByteCount: payload.count)
    }
  }

  private func decode(_ blocks: [Block]) -> [[UInt8]?] {
    var decompressor = HistoryDecompressor()
    return blocks.map { block in
      if block.isRestart { decompressor.restart() }
      return block.stored.withUnsafeBytes { stored in
        guard block.isCompressed else {
          decompressor.append(raw: stored)
          return Array(stored)
        }
        return decompressor.decompress(stored, rawByteCount: block.rawByteCount).map { Array($0) }
      }
    }
  }

  @Test("small records of one kind cost a few bytes each: the whole history counts")
  func history() {
    let payloads = (0..<500).map { payload($0, 200) }
    let blocks = encode(payloads)
    #expect(blocks[0].isRestart && !blocks[1].isRestart)
    #expect(decode(blocks) == payloads)
    // The text of a record comes back after fifty others, not in the one before only.
    let varied = (0..<500).map { noise(180, seed: UInt64($0 % 50)) + bytes("\($0)") }
    let variedBlocks = encode(varied)
    #expect(decode(variedBlocks) == varied)
    let tail = variedBlocks[100...]
    #expect(tail.reduce(0) { $0 + $1.stored.count } < tail.count * 40)
  }

  @Test("the history restarts behind its 256 KiB, and only there")
  func wrap() {
    var payloads: [[UInt8]] = []
    for index in 0..<400 { payloads.append(payload(index, 10_000 + index * 7)) }
    let blocks = encode(payloads)
    #expect(decode(blocks) == payloads)
    let restarts = blocks.indices.filter { blocks[$0].isRestart }
    let total = payloads.reduce(0) { $0 + $1.count }
    for (restart, next) in zip(restarts, restarts.dropFirst()) {
      let byteCount = payloads[restart..<next].reduce(0) { $0 + $1.count }
      let last = payloads[next - 1].count
      #expect(byteCount - last < 256 << 10 && byteCount >= 256 << 10, "from \(restart) on")
    }
    #expect(restarts.count > total / (300 << 10))
  }

  @Test("raw-stored, empty-looking and huge payloads take their place in the history")
  func mixed() {
    var random = SeededRandomness(seed: 11)
    for round in 0..<max(5, Scale.scaled(30)) {
      var payloads: [[UInt8]] = []
      for index in 0..<Int.random(in: 1...60, using: &random) {
        switch Int.random(in: 0..<12, using: &random) {
        case 0:
          payloads.append(noise(Int.random(in: 1...80_000, using: &random), seed: UInt64(index)))
        case 1: payloads.append(payload(index, Int.random(in: 60_000...140_000, using: &random)))
        case 2 where round % 5 == 0: payloads.append(payload(index, 1_500_000))
        case 3 where round % 5 == 1: payloads.append(noise(1_100_000, seed: UInt64(index)))
        case 4: payloads.append([UInt8(truncatingIfNeeded: index)])
        case 5:
          payloads.append(Array(repeating: 0, count: Int.random(in: 1...9000, using: &random)))
        default: payloads.append(payload(index, Int.random(in: 1...2000, using: &random)))
        }
      }
      let restarts = Set(
        payloads.indices.filter { _ in Int.random(in: 0..<15, using: &random) == 0 })
      let blocks = encode(payloads, restartAt: restarts)
      for index in restarts { #expect(blocks[index].isRestart) }
      #expect(decode(blocks) == payloads, "round \(round)")
    }
  }

  @Test("a payload larger than the arena leaves no history behind")
  func largeSingle() {
    let payloads = [payload(1, 500), payload(2, 3_000_000), payload(3, 500), payload(4, 500)]
    let blocks = encode(payloads)
    #expect(blocks.map(\.isRestart) == [true, true, true, false])
    #expect(decode(blocks) == payloads)
  }

  @Test("implausible sizes are refused before memory is taken")
  func implausibleSizes() {
    #expect(Compression.isPlausible(raw: 255 * 100, stored: 100))
    #expect(!Compression.isPlausible(raw: 255 * 100 + 65, stored: 100))
    #expect(!Compression.isPlausible(raw: UInt64(Compression.rawByteLimit) + 1, stored: 1 << 28))
    #expect(!Compression.isPlausible(raw: .max, stored: .max))
    #expect(!Compression.isPlausible(raw: 0, stored: .max))
    // What LZ4 really makes of the most compressible bytes is plausible.
    let zeros = [UInt8](repeating: 0, count: 10_000_000)
    let block = encode([zeros])[0]
    #expect(
      Compression.isPlausible(
        raw: UInt64(block.rawByteCount), stored: UInt64(block.stored.count)))
  }

  @Test("a record that claims to decompress to more than it can is refused before memory is taken")
  func decompressionBombs() throws {
    let disk = SimulatedDisk()
    let directory = try open(disk)
    let writer = try newLog(directory)
    try writer.append(payload(1))
    try writer.close()
    let end = try #require(try read(directory)).end
    for (rawByteCount, isPlausible) in [
      (255 * 100 + 65, false), (Compression.rawByteLimit, false), (Int.max, false), (200, true),
    ] {
      let hurt = disk.copy()
      let record = forgedRecord(
        behind: end, firstLSN: 2, payload: noise(100, seed: 1), rawByteCount: rawByteCount)
      hurt.overwrite(segmentPath(1), at: Int(end.offset), with: record)
      let torn = try #require(try read(hurt)?.end.torn, "\(rawByteCount)")
      // One that it could be is decompressed, and found not to be.
      #expect(torn.expected.hasPrefix("lengths within the limits") != isPlausible, "\(torn)")
    }
  }

  @Test("changed blocks never decode outside their bounds")
  func changedBlocks() {
    var random = SeededRandomness(seed: 4)
    let payloads = (0..<20).map { payload($0, 300) }
    let blocks = encode(payloads)
    for _ in 0..<5000 {
      var changed = blocks
      for _ in 0..<3 {
        let block = Int.random(in: 0..<changed.count, using: &random)
        let place = Int.random(in: 0..<changed[block].stored.count, using: &random)
        changed[block].stored[place] = UInt8.random(in: 0...255, using: &random)
        if Bool.random(using: &random) {
          changed[block].rawByteCount = Int.random(in: 0...5000, using: &random)
        }
      }
      for (index, decoded) in decode(changed).enumerated() {
        if let decoded, changed[index].isCompressed {
          #expect(decoded.count == changed[index].rawByteCount)
        }
      }
    }
  }

  @Test("a log that lost its history's beginning is refused by the checksum, not misread")
  func wrongHistory() throws {
    let disk = SimulatedDisk()
    let directory = try open(disk)
    let writer = try newLog(directory)
    try writer.append(noise(300, seed: 1))
    let second = writer.segmentByteCount
    try writer.append(noise(300, seed: 1))
    try writer.append(noise(300, seed: 1))
    try writer.close()
    // A payload of the same length in the first record: its own checksum speaks first.
    disk.overwrite(segmentPath(1), at: Int(second) - 300, with: noise(300, seed: 2))
    #expect(throws: StorageError.self) { try read(directory) }
  }

  @Test("records of a megabyte and more, compressible or not, through the log")
  func largeRecords() throws {
    let disk = SimulatedDisk()
    let directory = try open(disk)
    let writer = try newLog(directory, options: LogOptions())
    let payloads = [
      payload(1, 100), noise(2_000_000, seed: 1), payload(2, 1_048_576), payload(3, 100),
      payload(4, 5_000_000), payload(5, 100), noise(70_000, seed: 2), payload(6, 100),
    ]
    for payload in payloads { try writer.append(payload) }
    try writer.close()
    #expect(try read(directory)?.entries.map(\.payload) == payloads)
  }

  @Test("the history restarts at every opening and after every cut")
  func restartPoints() throws {
    let disk = SimulatedDisk()
    let directory = try open(disk)
    let writer = try newLog(directory)
    for number in 0..<3 { try writer.append(payload(number, 200)) }
    disk.inject(DiskFault(.partial(20, SystemError.noSpace.code), of: [.write], at: 1))
    try writer.stage(payload(3, 200))
    #expect(throws: StorageError.self) { try writer.write() }
    try writer.cutBack()
    try writer.append(payload(4, 200))
    directory.close()
    let (again, resumed, _) = try resume(disk)
    try resumed.append(payload(5, 200))
    var restarts: [Bool] = []
    var found: [[UInt8]] = []
    _ = try LogReader.read(again) { (record, bytes) throws(StorageError) in
      restarts.append(record.header.isRestart)
      found.append(Array(bytes))
    }
    #expect(restarts == [true, false, false, true, true])
    #expect(found == [0, 1, 2, 4, 5].map { payload($0, 200) })
  }

  @Test("sizes that LZ4 cannot give are refused, both ways")
  func plausibleSizes() {
    for raw in [0, 1, 255, 4_096, Compression.rawByteLimit] {
      let most = UInt64(Compression.bound(raw))
      #expect(Compression.isPlausible(raw: UInt64(raw), stored: most))
      #expect(!Compression.isPlausible(raw: UInt64(raw), stored: most + 1))
      #expect(!Compression.isPlausible(raw: UInt64(raw), stored: .max))
    }
    #expect(Compression.isPlausible(raw: 255 * 7 + 64, stored: 7))
    #expect(!Compression.isPlausible(raw: 255 * 7 + 65, stored: 7))
    #expect(!Compression.isPlausible(raw: .max, stored: .max))
  }
}
