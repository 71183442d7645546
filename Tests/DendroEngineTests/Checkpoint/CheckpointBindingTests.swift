import DendroEngine
import DendroStorage
import DendroTesting
import DendroTree
import Testing

@Suite("A checkpoint and its log")
struct CheckpointBindingTests {
  private static func open(_ disk: SimulatedDisk) throws -> Engine {
    try Engine.open(at: "/db", options: .inline, environment: disk.environment)
  }

  private static func write(_ engine: Engine, _ range: ClosedRange<Int>, _ value: String) throws {
    for number in range {
      engine.submit(try set("n\(number)", .string(value)), completion: nil)
      engine.pump()
    }
  }

  private static func checkpoints(_ disk: SimulatedDisk) -> [String] {
    disk.names(in: "/db").filter { $0.hasSuffix(".checkpoint") }.map { "/db/" + $0 }
  }

  /// A database, and a copy that went on with as many other writes.
  private static func forks() throws -> (one: SimulatedDisk, other: SimulatedDisk, tree: Node) {
    let base = SimulatedDisk(seed: 1)
    let engine = try open(base)
    try write(engine, 1...3, "common")
    try engine.checkpoint()
    try engine.close()
    var disks: [SimulatedDisk] = []
    var tree = Node.empty
    for (seed, value) in [(7, "other"), (5, "one")] as [(UInt64, String)] {
      let disk = base.copy(seed: seed)
      let engine = try open(disk)
      try write(engine, 4...8, value)
      try engine.checkpoint()
      try write(engine, 9...10, value)
      tree = engine.head.root
      try engine.close()
      disks.append(disk)
    }
    return (disks[1], disks[0], tree)
  }

  @Test("one of a copy that went on is passed over, named, and not used for the past either")
  func fork() throws {
    let (one, other, tree) = try Self.forks()
    let path = try #require(Self.checkpoints(one).last)
    #expect(Self.checkpoints(other).last == path)
    let mixed = one.copy()
    let bytes = try #require(other.contents(of: path))
    mixed.overwrite(path, at: 0, with: bytes)
    mixed.resize(path, to: bytes.count)
    let engine = try Self.open(mixed)
    #expect(engine.head.root == tree)
    #expect(engine.report.checkpointLSN == LogSequenceNumber(3))
    let named = try #require(engine.report.unreadableCheckpoints.first)
    #expect(named.contains("another log") && named.contains(path))
    let past = try engine.state(at: .lsn(LogSequenceNumber(9)))
    #expect(past?.root.node(at: try path1("n8")).scalar == .string("one"))
    // The next ones are good again.
    try engine.checkpoint()
    try Self.write(engine, 11...12, "more")
    try engine.checkpoint()
    let last = engine.head.root
    try engine.close()
    let again = try Self.open(mixed)
    #expect(again.head.root == last && again.report.unreadableCheckpoints.isEmpty)
    try again.close()
  }

  private func path1(_ string: String) throws -> Path { try Path(parsing: string) }

  @Test("if no other serves, opening is refused with its name")
  func noOther() throws {
    let (one, other, _) = try Self.forks()
    // The log behind the newest checkpoint alone.
    let mixed = one.copy()
    for name in one.names(in: "/db") where name.hasSuffix(".log") {
      if name < "00000000000000000009" { mixed.erase("/db/" + name) }
    }
    let all = Self.checkpoints(one)
    for path in all.dropLast() { mixed.erase(path) }
    let path = try #require(all.last)
    #expect(try Self.open(mixed.copy()).report.unreadableCheckpoints.isEmpty)
    let bytes = try #require(other.contents(of: path))
    mixed.overwrite(path, at: 0, with: bytes)
    mixed.resize(path, to: bytes.count)
    let error = #expect(throws: EngineError.self) { try Self.open(mixed) }
    guard case .storage(.corrupt(path, 56, _, _)) = error else {
      Issue.record("\(error as Any)")
      return
    }
  }

  @Test("what a checkpoint needs of the log is checked without opening the database")
  func needs() throws {
    let (one, other, _) = try Self.forks()
    func problems(_ disk: SimulatedDisk) throws -> [String] {
      let directory = try DatabaseDirectory.open(
        "/db", environment: disk.environment, mode: .readOnly)
      defer { directory.close() }
      return try directory.contents().checkpoints.compactMap { lsn in
        do throws(StorageError) {
          try LogReader.check(CheckpointReader.open(directory, lsn: lsn), in: directory)
          return nil
        } catch {
          return error.description
        }
      }
    }
    #expect(try problems(one).isEmpty)
    // The segments that the older one needs.
    let gone = one.copy()
    for name in one.names(in: "/db") where name.hasSuffix(".log") {
      if name < "00000000000000000009" { gone.erase("/db/" + name) }
    }
    #expect(try problems(gone).count == 1)
    #expect(try problems(gone).first?.contains("the log from write 4 on is missing") == true)
    let mixed = one.copy()
    let path = try #require(Self.checkpoints(one).last)
    let bytes = try #require(other.contents(of: path))
    mixed.overwrite(path, at: 0, with: bytes)
    mixed.resize(path, to: bytes.count)
    #expect(try problems(mixed).count == 1)
  }

  @Test("a checkpoint in the midst of the writers' batches belongs to its log")
  func underLoad() async throws {
    let disk = SimulatedDisk(seed: 3)
    let engine = try Engine.open(at: "/db", environment: disk.environment)
    try await withThrowingTaskGroup(of: Void.self) { group in
      for writer in 0..<6 {
        group.addTask {
          for number in 0..<60 {
            try await engine.write(set("\(writer)/\(number)", .string(incompressible(40))))
          }
        }
      }
      for _ in 0..<6 { try await engine.checkpoint() }
      try await group.waitForAll()
    }
    let root = engine.head.root
    try await engine.close()
    let again = try Self.open(disk)
    #expect(again.head.root == root && again.report.unreadableCheckpoints.isEmpty)
    #expect(again.report.checkpointLSN != nil)
    try await again.close()
  }
}
