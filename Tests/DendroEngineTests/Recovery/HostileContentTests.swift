import DendroStorage
import DendroTesting
import DendroTestSupport
import DendroTree
import Testing

@testable import DendroEngine

/// Content that no engine of ours writes, under right checksums.
@Suite("Hostile content")
struct HostileContentTests {
  private static let id = DatabaseID(high: 1, low: 2)

  private static func encoded(_ write: Write) -> [UInt8] {
    let buffer = PayloadBuffer()
    WriteCoding.encodeHead(of: write, timeDelta: 0, previousPath: .root, into: buffer)
    WriteCoding.encodeBody(of: write, into: buffer)
    return buffer.withBytes { Array($0) }
  }

  private static func orderedBytes(_ key: String) throws -> [UInt8] {
    try Key(key).withOrderedBytes { Array($0) }
  }

  private static var leaf: [UInt8] {
    let buffer = PayloadBuffer()
    BodyWriter.append(Node(.bool(true)), to: buffer)
    return buffer.withBytes { Array($0) }
  }

  // MARK: Writes

  private static func error(_ bytes: [UInt8]) -> CodingError? {
    bytes.withUnsafeBytes { raw in
      var reader = LogV1Reader()
      reader.restart(raw, firstLSN: LogSequenceNumber(1), baseTime: 0)
      var root = Node.empty
      do throws(CodingError) {
        _ = try reader.applyNext(to: &root)
        return nil
      } catch {
        return error
      }
    }
  }

  @Test("an increment by what is no number, a leaf at what is no path")
  func writes() throws {
    let place = try path("a")
    let set = Self.encoded(.set(place, Node(.bool(true))))
    #expect(Self.error(set) == nil)
    var increment = set
    increment[1] = Self.encoded(.increment(place, .integer(1)))[1]
    #expect(Self.error(increment)?.expected == "a number")
    // Time, kind, what is shared, the path's length, and the key's; then the key.
    var nowhere = set
    let key = try Self.orderedBytes("a")
    try #require(nowhere[5] == key[0])
    nowhere[5] = 0xFF
    #expect(Self.error(nowhere)?.expected == "a path")
  }

  // MARK: Checkpoints

  private static func decoded(_ chunk: [UInt8]) throws -> StorageError? {
    let disk = SimulatedDisk(seed: 1)
    let directory = try DatabaseDirectory.open(
      "/db", environment: disk.environment, mode: .readWrite(create: true))
    let lsn = LogSequenceNumber(1)
    let writer = try CheckpointWriter.begin(
      directory, databaseID: id, lsn: lsn, time: 0, logChecksum: 0, version: 0)
    let result = chunk.withUnsafeBytes { chunk in
      Result { () throws(StorageError) in try writer.chunk(chunk) }
    }
    try result.get()
    try writer.finish(leafCount: 1, contentHash: 0)
    let reader = try CheckpointReader.open(directory, lsn: lsn)
    do throws(StorageError) {
      _ = try CheckpointCoding.decode(reader)
      return nil
    } catch {
      return error
    }
  }

  @Test("entries of a checkpoint that are no leaves, at no keys, or too deep")
  func entries() throws {
    let key = try Self.orderedBytes("a")
    func entry(_ keys: [[UInt8]], _ content: [UInt8]) -> [UInt8] {
      let path = keys.flatMap { [UInt8($0.count)] + $0 }
      var length = ByteWriter()
      length.varint(UInt64(path.count))
      return [0] + [UInt8](length.bytes) + path + content
    }
    #expect(try Self.decoded(entry([key], Self.leaf)) == nil)
    for (entry, expected) in [
      (entry([key], [0xFF]), "a packed leaf in chunk 0"),
      (entry([[0xFF]], Self.leaf), "a key in chunk 0"),
      (entry([[0xFF], key], Self.leaf), "a key in chunk 0"),
      (
        entry(Array(repeating: key, count: Limits.depth + 2), Self.leaf),
        "at most \(Limits.depth) levels in chunk 0"
      ),
    ] {
      guard case .corrupt(_, 64, let found, _) = try Self.decoded(entry) else {
        Issue.record("\(expected): \(try Self.decoded(entry) as Any)")
        continue
      }
      #expect(found == expected)
    }
  }

  // MARK: A log below a good checkpoint

  /// A database of these records, which its checkpoint hides from an opening.
  private static func hidden(
    _ records: [(bytes: [UInt8], count: Int)] = [([UInt8](repeating: 9, count: 20), 2)]
  ) throws -> SimulatedDisk {
    let disk = SimulatedDisk(seed: 1)
    let directory = try DatabaseDirectory.open(
      "/db", environment: disk.environment, mode: .readWrite(create: true))
    let log = try LogWriter.create(directory, databaseID: id, time: 0)
    var lsn = LogSequenceNumber.zero
    for record in records {
      let result = record.bytes.withUnsafeBytes { bytes in
        Result { () throws(StorageError) in
          try log.stage(bytes, firstLSN: lsn.next, count: record.count, baseTime: 0)
        }
      }
      try result.get()
      try log.write()
      lsn = LogSequenceNumber(lsn.rawValue + UInt64(record.count))
    }
    try log.synchronize()
    try log.close()
    var root = Node.empty
    _ = root.apply(.set(try path("a"), Node(.bool(true))))
    _ = try CheckpointCoding.write(
      TreeRoots(data: root), lsn: lsn, time: 0, databaseID: id, to: directory,
      isCancelled: { false })
    directory.close()
    return disk
  }

  @Test("in the past it is reported as damage, to tools too; the present does not need it")
  func past() async throws {
    let disk = try Self.hidden()
    let engine = try Engine.open(at: "/db", options: .inline, environment: disk.environment)
    #expect(try engine.view(at: path("a")).scalar == .bool(true))
    let past = #expect(throws: EngineError.self) {
      try engine.state(at: .lsn(LogSequenceNumber(1)))
    }
    guard case .storage(.corrupt) = past else {
      Issue.record("\(past as Any)")
      return
    }
    let changes = try engine.changes(since: .zero)
    let followed = await #expect(throws: EngineError.self) { try await changes.next() }
    guard case .storage(.corrupt(_, _, "writes", let problem)) = followed else {
      Issue.record("\(followed as Any)")
      return
    }
    #expect(problem.hasPrefix("expected "))
    #expect(changes.position == .zero)
    try await engine.close()

    let directory = try DatabaseDirectory.open(
      "/db", environment: disk.environment, mode: .readOnly)
    defer { directory.close() }
    var problems: [String?] = []
    _ = try LogReader.read(directory) { (record, payload) throws(StorageError) in
      problems.append(RecordWrites(record, payload).problem)
    }
    #expect(problems == [problem])
  }

  @Test("in the past, up to a time; and a filter for one location wants the record")
  func pastUpToTime() throws {
    // A time that does not end.
    let disk = try Self.hidden([([UInt8](repeating: 0xFF, count: 20), 2)])
    let engine = try Engine.open(at: "/db", options: .inline, environment: disk.environment)
    let past = #expect(throws: EngineError.self) { try engine.state(at: .time(-1)) }
    guard case .storage(.corrupt(let path, _, _, _)) = past else {
      Issue.record("\(past as Any)")
      return
    }
    #expect(path.hasSuffix(".log"))
    try engine.close()

    let directory = try DatabaseDirectory.open(
      "/db", environment: disk.environment, mode: .readOnly)
    defer { directory.close() }
    let parallel = try #require(ReplayLocation(try Path(parsing: "elsewhere")).parallelReading)
    let filter = parallel.makeFilter()
    var wanted: [Bool] = []
    _ = try LogReader.read(directory) { (record, payload) throws(StorageError) in
      wanted.append(filter.wants(record, payload))
    }
    #expect(wanted == [true])
  }

  @Test("the changes before a record that cannot be read come before its error")
  func changesBeforeDamage() async throws {
    let good = try ["a", "b"].flatMap { Self.encoded(.set(try path($0), Node(.bool(true)))) }
    let bad = [UInt8](repeating: 9, count: 20)
    let disk = try Self.hidden([(good, 2), (bad, 1)])
    let engine = try Engine.open(at: "/db", options: .inline, environment: disk.environment)
    let changes = try engine.changes(since: .zero)
    #expect(try await changes.next()?.map(\.lsn.rawValue) == [1, 2])
    for _ in 0..<2 {
      await #expect(throws: EngineError.self) { try await changes.next() }
      #expect(changes.position == LogSequenceNumber(2))
    }
    try await engine.close()
  }

  @Test("a record with very many writes is followed a page at a time")
  func manyWrites() throws {
    let count = 80_000
    let write = Self.encoded(.remove(try path("a")))
    let bytes = (0..<count).flatMap { _ in write }
    let disk = try Self.hidden([(write + write, 2), (bytes, count), (write, 1)])
    let engine = try Engine.open(at: "/db", options: .inline, environment: disk.environment)
    let end = LogSequenceNumber(UInt64(count) + 3)
    for start in [0, 2, 70_000] as [UInt64] {
      let changes = try engine.changes(since: LogSequenceNumber(start))
      var last = start
      while changes.position < end {
        let page = try changes.page(upTo: end)
        #expect(page.count <= (256 << 10) / write.count + 1)
        if let first = page.first { #expect(first.lsn.rawValue == last + 1) }
        #expect(zip(page, page.dropFirst()).allSatisfy { $0.lsn.next == $1.lsn })
        last = page.last?.lsn.rawValue ?? last
      }
      #expect(last == end.rawValue)
    }
    try engine.close()
  }
}
