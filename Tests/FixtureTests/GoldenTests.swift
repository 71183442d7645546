import DendroCrashHarness
import DendroCommandLine
import DendroEngine
import DendroStorage
import DendroTree
import Foundation
import Testing

/// G19: databases of every format open, read the same, and go on in the newest.
@Suite("Golden databases")
struct GoldenTests {
  private static let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
    .deletingLastPathComponent().appendingPathComponent("Fixtures/Golden").path

  static let names: [String] = {
    let names = (try? FileManager.default.contentsOfDirectory(atPath: root)) ?? []
    return names.filter { $0.hasSuffix(".txt") }.map { String($0.dropLast(4)) }.sorted()
  }()

  @Test("there is one of each kind of today's format")
  func complete() throws {
    for database in try GoldenDatabases.all() {
      let name = "\(FileFormat.newestVersion)-\(database.name)"
      #expect(Self.names.contains(name), "make it: crashlab golden Tests/Fixtures/Golden")
    }
  }

  @Test("it opens, read-only and for writing, verifies, and accepts writes", arguments: names)
  func opens(name: String) throws {
    let text = try String(contentsOfFile: "\(Self.root)/\(name).txt", encoding: .utf8)
    let facts = try #require(GoldenFacts(text: text))
    #expect(facts.format <= FileFormat.newestVersion)
    var files: [(name: String, bytes: [UInt8])] = []
    for file in try FileManager.default.contentsOfDirectory(atPath: "\(Self.root)/\(name)") {
      let bytes = try Data(contentsOf: URL(fileURLWithPath: "\(Self.root)/\(name)/\(file)"))
      files.append((file, Array(bytes)))
    }
    for file in files where file.name.hasSuffix(".log") || file.name.hasSuffix(".checkpoint") {
      #expect(Self.format(of: file.bytes) == facts.format, "\(file.name)")
    }
    try Self.check(files, facts)
  }

  @Test("those made today open too, the same ones each time")
  func madeToday() throws {
    let again = try GoldenDatabases.all()
    for (database, other) in zip(try GoldenDatabases.all(), again) {
      #expect(database.files.map(\.name) == other.files.map(\.name))
      #expect(database.files.map(\.bytes) == other.files.map(\.bytes), "\(database.name)")
      #expect(database.facts == other.facts)
      #expect(GoldenFacts(text: database.facts.text) == database.facts)
      try Self.check(database.files, database.facts)
    }
  }

  // MARK: Checking

  private static func format(of bytes: [UInt8]) -> UInt32? {
    guard bytes.count >= 12 else { return nil }
    return bytes[8..<12].reversed().reduce(0) { $0 << 8 | UInt32($1) }
  }

  private static func check(_ files: [(name: String, bytes: [UInt8])], _ facts: GoldenFacts) throws
  {
    let place = NSTemporaryDirectory() + "dendro-golden-\(UUID().uuidString)"
    try FileManager.default.createDirectory(atPath: place, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(atPath: place) }
    for file in files {
      try Data(file.bytes).write(to: URL(fileURLWithPath: "\(place)/\(file.name)"))
    }

    // Read-only: nothing changes.
    let reader = try Engine.open(at: place, mode: .readOnly)
    expect(reader, facts)
    try reader.close()
    #expect(CapturedOutput().run(["verify", place]) == facts.verifyStatus)
    let names = try FileManager.default.contentsOfDirectory(atPath: place)
    #expect(Set(names) == Set(files.map(\.name)))
    for file in files {
      #expect(FileManager.default.contents(atPath: "\(place)/\(file.name)") == Data(file.bytes))
    }

    // For writing: it continues where it ended, and its next checkpoint has the newest format.
    var options = EngineOptions()
    options.history = .all
    let writer = try Engine.open(at: place, options: options, mode: .readWriteExisting)
    expect(writer, facts)
    let written = DispatchSemaphore(value: 0)
    writer.submit(Draft(.set(Path("after"), Node(.string("upgraded"))))) { result in
      #expect((try? result.get())??.rawValue == facts.lastLSN + 1)
      written.signal()
    }
    written.wait()
    try writer.checkpoint()
    let expected = writer.head.root
    try writer.close()
    let newest = try FileManager.default.contentsOfDirectory(atPath: place)
      .filter { $0.hasSuffix(".checkpoint") }.max()
    let bytes = newest.flatMap { FileManager.default.contents(atPath: "\(place)/\($0)") }
    #expect(bytes.map { format(of: Array($0)) } == FileFormat.newestVersion)

    let again = try Engine.open(at: place, options: options, mode: .readWriteExisting)
    #expect(again.head.root == expected)
    #expect(again.head.lsn.rawValue == facts.lastLSN + 1)
    try expectHistory(again, facts)
    try again.close()
  }

  private static func expect(_ engine: Engine, _ facts: GoldenFacts) {
    let (root, lsn) = engine.head
    #expect(lsn.rawValue == facts.lastLSN)
    #expect(root.leafCount() == facts.leafCount)
    #expect(CheckpointCoding.contentHash(of: root) == facts.contentHash)
    let system = engine.systemNode(at: .root)
    let systemHash = system.isEmpty ? nil : CheckpointCoding.contentHash(of: system)
    #expect(systemHash == facts.systemHash)
    #expect(throws: Never.self) { try root.checkInvariants() }
  }

  private static func expectHistory(_ engine: Engine, _ facts: GoldenFacts) throws {
    for state in facts.history {
      let found = try #require(try engine.state(at: .lsn(LogSequenceNumber(state.lsn))))
      #expect(
        CheckpointCoding.contentHash(of: found.root) == state.contentHash, "at write \(state.lsn)")
    }
  }
}
