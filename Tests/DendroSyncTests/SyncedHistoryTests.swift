import Dendro
import DendroServer
import DendroTestSupport
import Foundation
import Synchronization
import Testing

@testable import DendroSync

/// What the past of a synced directory is, and what the tool says of it.
@Suite("synced databases: history and inspection")
struct SyncedHistoryTests {
  private let folder: TemporaryFolder
  private var directory: String { folder.path + "/db" }

  init() throws { folder = try TemporaryFolder() }

  /// The lines that the tool prints.
  private func dendro(_ words: String...) throws -> [[String: Any]] {
    let own = try FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")
    let process = Process()
    process.executableURL = URL(fileURLWithPath: own).deletingLastPathComponent()
      .appending(path: "dendro")
    process.arguments = words + ["--json"]
    process.standardError = FileHandle.nullDevice
    let path = try folder.write("output", "")
    process.standardOutput = FileHandle(forWritingAtPath: path)
    try process.run()
    process.waitUntilExit()
    #expect(process.terminationStatus == 0, "\(words)")
    return try String(contentsOfFile: path, encoding: .utf8).split(separator: "\n").map { line in
      try JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any] ?? [:]
    }
  }

  /// Which writes have changed which paths.
  private final class Changes: Sendable {
    private let writes = Mutex<[String: [Database.LSN]]>([:])

    func note(_ change: DatabaseChange) {
      var paths = [change.path]
      if case .update(let entries) = change.operation { paths = entries.map(\.path) }
      for path in paths { writes.withLock { $0[path, default: []].append(change.lsn) } }
    }

    func writes(of path: String) -> [Database.LSN] { writes.withLock { $0[path] ?? [] } }
  }

  private func blamed() throws -> [String: Int] {
    var writes: [String: Int] = [:]
    for line in try dendro("blame", directory, "/a") {
      writes[line["path"] as? String ?? ""] = line["lsn"] as? Int
    }
    return writes
  }

  /// What writes of the log do, place by place.
  private func places(_ lines: [[String: Any]]) -> [[String: Any]] {
    lines.flatMap { line in
      guard let entries = line["entries"] as? [[String: Any]] else { return [line] }
      return entries.map { entry in
        let path = "\(line["path"] as? String ?? "")/\(entry["path"] as? String ?? "")"
        return entry.merging(["path": path, "lsn": line["lsn"] ?? 0]) { $1 }
      }
    }
  }

  /// The writes of the log at a path.
  private func logged(_ path: String) throws -> [Int] {
    places(try dendro("log", directory)).compactMap { place in
      place["path"] as? String == path ? place["lsn"] as? Int : nil
    }
  }

  /// What the log has last of the writes without an answer: which are set, or nil if they are removed.
  private func keptWrites() throws -> [String: [String: Any]]? {
    let lines = try dendro("log", directory, "--system").filter {
      $0["root"] as? String == "system"
    }
    let last = places(lines).last { place in
      (place["path"] as? String)?.hasPrefix("/sync/pending") == true
    }
    #expect(last?["path"] as? String == "/sync/pending")
    if last?["operation"] as? String == "remove" { return nil }
    return try #require(last?["value"] as? [String: [String: Any]])
  }

  private func waiting() throws -> Int? {
    let sync = try dendro("info", directory, "--full").first?["sync"] as? [String: Any]
    return sync?["pending"] as? Int
  }

  @Test(
    "a write is no part of the history before the server has answered it, and is there once after")
  func answers() async throws {
    try await serving { origin, server in
      try await origin.reference(withPath: "a/w").setValue(0)
      let database = try synced(Int(server.port), at: directory)
      let changes = Changes()
      let following = Task {
        for try await change in database.changes(since: 0) { changes.note(change) }
      }
      let ref = database.reference(withPath: "a")
      let viewer = Viewer(database)
      viewer.listen("a", ref)
      _ = try await viewer.take(1)
      _ = try await ref.child("x").setValue(1)
      database.goOffline()
      ref.child("y").withoutWaiting { $0.setValue(2) }
      try await database.synchronize()
      let pending = try await database.historyRange().newest
      let before = try await ref.snapshot(at: pending)
      #expect(before.childSnapshot(forPath: "x").int == 1)
      #expect(!before.hasChild("y"))
      #expect(try await ref.getData().childSnapshot(forPath: "y").int == 2)
      #expect(try Set(blamed().keys) == ["/a/w", "/a/x"])
      #expect(try logged("/a/x").count == 1)
      #expect(try logged("/a/y").isEmpty)
      let kept = try keptWrites()
      #expect(kept?.keys.sorted() == ["2"])
      #expect(kept?["2"]?["sent"] == nil)
      #expect(try waiting() == 1)
      let line = try #require(try dendro("pending", directory).first)
      #expect(line["number"] as? Int == 2)
      #expect(line["user"] as? String == "anonymous")
      #expect(line["operation"] as? String == "set")
      #expect(line["path"] as? String == "/a/y")
      #expect(line["sent"] as? Bool == false)
      #expect(line["held"] as? Bool == false)
      #expect(line["serverValues"] as? Int == 0)
      #expect(line["value"] as? Int == 2)
      let time = try #require(line["time"] as? Double)
      #expect(abs(time / 1000 - Date().timeIntervalSince1970) < 3600)

      database.goOnline()
      try await database.waitForPendingWrites()
      try await database.synchronize()
      try await eventually { !changes.writes(of: "/a/y").isEmpty }
      let newest = try await database.historyRange().newest
      #expect(try await ref.snapshot(at: newest).childSnapshot(forPath: "y").int == 2)
      #expect(!(try await ref.snapshot(at: pending).hasChild("y")))
      let lsn = try #require(blamed()["/a/y"])
      #expect(lsn > Int(pending))
      #expect(try logged("/a/x").count == 1)
      #expect(try logged("/a/y") == [lsn])
      #expect(changes.writes(of: "/a/x").count == 1)
      #expect(changes.writes(of: "/a/y") == [Database.LSN(lsn)])
      #expect(try keptWrites() == nil)
      #expect(try waiting() == 0)
      #expect(try dendro("pending", directory).isEmpty)
      try await database.close()
      _ = await following.result
    }
  }

  @Test(
    "`dendro pending --json` says of each write whose it is, what it does, and what it waits for")
  func pending() async throws {
    let server = try ScriptedServer()
    let database = try synced(server.port, at: directory)
    let client = try #require(database.remote as? SyncClient)
    try database.authenticate { .user(unsignedToken("ann")) }
    try await eventually { client.reading(\.identity.hasToken) }
    database.reference(withPath: "n").withoutWaiting { $0.setValue(ServerValue.increment(3)) }
    database.reference(withPath: "s").withoutWaiting { $0.setValue(1) }
    database.reference(withPath: "u").withoutWaiting {
      $0.updateChildValues(["v": 1, "t": ServerValue.timestamp()])
    }
    /// Signs the client in at a server with this history, which takes so many writes and does not answer.
    func serve(_ branch: String, _ count: Int) throws {
      try server.accept(greets: false)
      try server.send(
        """
        {"t":"c","d":{"t":"h","d":{"ts":1700000000000,"v":"5","h":"h","s":"s",\
        "dendro":{"branch":"\(branch)","lsn":5,"since":0}}}}
        """)
      let signIn = try server.request()
      #expect(signIn.action == "auth")
      try server.answer(signIn.number, data: "{}")
      for _ in 0..<count { #expect(["p", "m"].contains(try server.request().action)) }
    }
    try serve("b1", 3)
    // Of what it was sent another server knows nothing.
    try serve("b2", 2)
    try database.authenticate(with: nil)
    database.reference(withPath: "w").withoutWaiting { $0.removeValue() }
    try await database.close()
    let lines = try dendro("pending", directory)
    #expect(lines.map { $0["number"] as? Int } == [1, 2, 3, 4])
    #expect(
      lines.map { $0["user"] as? String } == ["user ann", "user ann", "user ann", "anonymous"])
    #expect(lines.map { $0["operation"] as? String } == ["increment", "set", "update", "remove"])
    #expect(lines.map { $0["path"] as? String } == ["/n", "/s", "/u", "/w"])
    #expect(lines.map { $0["held"] as? Bool } == [true, false, false, false])
    #expect(lines.prefix(3).map { $0["sent"] as? Bool } == [true, true, true])
    #expect(lines.map { $0["serverValues"] as? Int } == [0, 0, 1, 0])
    #expect(lines.allSatisfy { $0["time"] is Int })
    #expect(lines[0]["delta"] as? Int == 3)
    #expect(lines[1]["value"] as? Int == 1)
    let entries = lines[2]["entries"] as? [[String: Any]]
    #expect(entries?.map { $0["path"] as? String } == ["t", "v"])
  }
}
