import DendroEngine
import DendroStorage
import DendroTesting
import DendroTree
import DendroTestSupport
import Foundation
import Testing

@testable import DendroCommandLine

/// What `verify` compares: the log's replay with every checkpoint, and with the tree that opening gives.
@Suite("dendro: verify")
struct VerifyTests {
  private let dendro: Tool
  private var folder: Folder { dendro.folder }
  init() throws { dendro = Tool(folder: try Folder()) }

  private var database: String { "\(folder.path)/db" }

  /// Makes all kinds of writes; with minimal history, and a checkpoint after each quarter of them.
  private func fill(history: HistoryRetention = .all) throws {
    var options = EngineOptions()
    options.history = history
    options.checkpointFactor = 0
    let engine = try Engine.open(at: database, options: options)
    var generator = WriteGenerator(seed: 7)
    for _ in 0..<4 {
      for _ in 0..<100 { engine.submit(Draft(generator.write()), completion: nil) }
      if history != .all { try engine.checkpoint() }
    }
    try engine.close()
  }

  /// Adds checkpoints of the tree as it was at each quarter of the log, as the replay of single writes gives it.
  ///
  /// - Parameter change: makes another tree of it.
  private func addCheckpoints(_ change: (_ index: Int, inout Node) throws -> Void = { _, _ in })
    throws
  {
    let directory = try DatabaseDirectory.open(
      database, environment: .system, mode: .readWrite(create: false))
    defer { directory.close() }
    var id: DatabaseID?
    var states: [(lsn: LogSequenceNumber, time: Int64, root: Node)] = []
    var root = Node.empty
    let cursor = LogCursor(directory)
    while try cursor.step({ item in
      if case .segment(let header, _, _) = item { id = header.databaseID }
      guard case .record(let record, _, let payload?) = item else { return }
      for logged in RecordWrites(record, payload).writes {
        _ = root.apply(logged.write)
        states.append((logged.lsn, logged.time, root))
      }
    }) {}
    for index in 0..<4 {
      let state = states[(index + 1) * states.count / 4 - 10]
      var root = state.root
      try change(index, &root)
      _ = try CheckpointCoding.write(
        TreeRoots(data: root), lsn: state.lsn, time: state.time, databaseID: #require(id),
        to: directory,
        isCancelled: { false })
    }
  }

  private var checkpoints: [LogSequenceNumber] {
    get throws {
      let directory = try DatabaseDirectory.open(database, environment: .system, mode: .readOnly)
      defer { directory.close() }
      return try directory.contents().checkpoints
    }
  }

  @Test(
    "a checkpoint with another second root than the log leads to is damage",
    arguments: [false, true])
  func secondRoot(isChanged: Bool) throws {
    var options = EngineOptions()
    options.checkpointFactor = 0
    let engine = try Engine.open(at: database, options: options)
    for number in 0..<50 {
      let key = try Path(parsing: "k\(number)")
      engine.submit(
        EncodedWrite(
          EncodedWrite(.set(key, Node(.integer(1)))),
          system: EncodedWrite(.set(key, Node(.bytes([UInt8(number)]))))), completion: nil)
    }
    let (root, lsn) = engine.head
    var system = engine.systemNode(at: .root)
    let id = try #require(engine.databaseID)
    try engine.close()
    if isChanged { system.graft(Node(.bytes([7])), at: try Path(parsing: "k9")) }
    let directory = try DatabaseDirectory.open(
      database, environment: .system, mode: .readWrite(create: false))
    _ = try CheckpointCoding.write(
      TreeRoots(data: root, system: system), lsn: lsn, time: 0, databaseID: id, to: directory,
      isCancelled: { false })
    directory.close()
    let outcome = try dendro("verify", "db")
    #expect(outcome.status == (isChanged ? 2 : 0))
    #expect((outcome.output + outcome.errors).contains("with the second root") == isChanged)
    for chunk in 0..<3 { #expect(try dendro("dump", "db", "checkpoint:\(chunk)").status == 0) }
    #expect(try dendro("dump", "db", "checkpoint:2").output.contains("no pages"))
  }

  @Test("the replay is compared with every checkpoint")
  func everyCheckpoint() throws {
    try fill()
    try addCheckpoints()
    let outcome = try dendro("verify", "db", "--json")
    #expect(outcome.status == 0, "\(outcome.output)")
    #expect(outcome.object["checkpoints"] as? Int == 4)
    #expect(outcome.object["comparedCheckpoints"] as? Int == 4)
    let writes = outcome.object["writes"] as? Int
    #expect(writes == outcome.object["lastLSN"] as? Int)
    #expect(writes == outcome.object["replayedWrites"] as? Int)
    #expect(
      outcome.object["hash"] as? String
        == (try dendro("hash", "db").output.trimmingCharacters(in: .newlines)))
  }

  @Test("--quick reads all bytes, replays nothing and says so", arguments: [true, false])
  func quick(keepsHistory: Bool) throws {
    try fill(history: keepsHistory ? .all : .none)
    if keepsHistory { try addCheckpoints() }
    let whole = try dendro("verify", "db", "--json").object
    let outcome = try dendro("verify", "db", "--quick", "--json")
    #expect(outcome.status == 0)
    let quick = outcome.object
    #expect(quick["quick"] as? Bool == true && whole["quick"] as? Bool == false)
    for member in ["lastLSN", "segments", "records", "writes", "checkpoints", "bytes"] {
      #expect(quick[member] as? Int == whole[member] as? Int, "\(member)")
    }
    #expect(quick["replayedWrites"] as? Int == 0 && quick["comparedCheckpoints"] as? Int == 0)
    #expect(quick["hash"] is NSNull && quick["leaves"] is NSNull)
    let lines = try dendro("verify", "db", "--quick").lines
    #expect(lines.last == "good")
    #expect(lines.contains { $0.hasPrefix("not checked   what records and checkpoints say") })
    #expect(lines.contains { $0.hasPrefix("read ") && $0.contains(" a second") })
  }

  @Test("--quick does not find a checkpoint with another tree, which is what it says")
  func quickOtherTree() throws {
    try fill()
    try addCheckpoints { index, root in
      if index == 3 { _ = root.apply(.set(try Path(parsing: "/new"), Node(.integer(1)))) }
    }
    #expect(try dendro("verify", "db").status == 2)
    #expect(try dendro("verify", "db", "--quick").status == 0)
  }

  @Test(
    "of a log that begins later, the replay begins with the oldest checkpoint that it leads on from"
  )
  func laterBeginning() throws {
    try fill(history: .none)
    let outcome = try dendro("verify", "db", "--json")
    #expect(outcome.status == 0, "\(outcome.output)")
    #expect(outcome.object["checkpoints"] as? Int == 2)
    #expect(outcome.object["comparedCheckpoints"] as? Int == 1)
    let oldest = try #require(try checkpoints.first)
    #expect(
      outcome.object["replayedWrites"] as? Int
        == (outcome.object["lastLSN"] as? Int).map { $0 - Int(oldest.rawValue) })

    // If that one cannot be read, the replay begins with the next.
    let name = "\(String(repeating: "0", count: 20 - "\(oldest)".count))\(oldest).checkpoint"
    var bytes = folder.bytes("db/\(name)")
    bytes[100] ^= 1
    try folder.write(bytes, to: "db/\(name)")
    let damaged = try dendro("verify", "db", "--json")
    #expect(damaged.status == 2)
    let damage = try #require(damaged.object["damage"] as? [[String: Any]])
    #expect(damage.count == 1 && (damage[0]["file"] as? String)?.hasSuffix(name) == true)
    #expect(damaged.object["comparedCheckpoints"] as? Int == 0)
    let newest = try #require(try checkpoints.last)
    #expect(
      damaged.object["replayedWrites"] as? Int
        == (damaged.object["lastLSN"] as? Int).map { $0 - Int(newest.rawValue) })
  }

  @Test(
    "a checkpoint with another tree is found, all checksums and its own hash being right",
    arguments: 0..<4)
  func otherTree(index: Int) throws {
    try fill()
    let key = try Key("other")
    try addCheckpoints { number, root in
      if number == index { _ = root.apply(.set(Path(keys: [key]), Node(.bool(true)))) }
    }
    let lsn = try checkpoints[index]
    let outcome = try dendro("verify", "db", "--json")
    #expect(outcome.status == 2)
    let damage = try #require(outcome.object["damage"] as? [[String: Any]])
    let messages = damage.compactMap { $0["message"] as? String }
    #expect(messages.first?.contains("the log replayed to LSN \(lsn)") == true, "\(messages)")
    // Opening begins with the newest one.
    let isNewest = index == 3
    #expect(messages.count == (isNewest ? 2 : 1), "\(messages)")
    #expect(messages.last?.contains("opening gives") == isNewest, "\(messages)")
    #expect(outcome.object["comparedCheckpoints"] as? Int == 4)
  }

  @Test("a sector that cannot be read is damage, and the rest is judged", arguments: [false, true])
  func unreadableSectors(isQuick: Bool) throws {
    let disk = SimulatedDisk(seed: 5)
    var options = EngineOptions()
    options.checkpointFactor = 0
    let environment = Environment(
      fileSystem: disk, clock: disk.clock, randomness: disk.randomness)
    let engine = try Engine.open(at: "/db", options: options, environment: environment)
    var generator = WriteGenerator(seed: 7)
    for index in 1...400 {
      engine.submit(Draft(generator.write()), completion: nil)
      if index % 150 == 0 { try engine.checkpoint() }
    }
    try engine.close()
    let paths = try disk.list("/db").map { "/db/\($0)" }
      .filter { $0.hasSuffix(".log") || $0.hasSuffix(".checkpoint") }
    #expect(paths.count >= 3)
    for path in paths {
      let size = try #require(disk.contents(of: path)).count
      for sector in Set([0, size / 1024, (size - 1) / 512]) {
        let bad = UnreadableDisk(disk, sectors: [path: [sector]])
        let directory = try DatabaseDirectory.open(
          "/db", environment: bad.environment, mode: .readOnly)
        defer { directory.close() }
        var verification = try Verification(directory, isQuick: isQuick)
        try verification.run()
        #expect(
          verification.damage.contains { $0.file == path && $0.offset == UInt64(sector * 512) },
          "\(path), sector \(sector): \(verification.damage)")
      }
    }
  }
}
