import Dendro
import DendroTestSupport
import Foundation
import Synchronization
import Testing

/// Readers that follow a directory whose writers turn segments, take checkpoints, remove old files, and are killed
/// and started again.
@Suite(.serialized) struct FollowingTests {
  private let folder = FileManager.default.temporaryDirectory
    .appendingPathComponent("dendro-following-\(UUID().uuidString)")
  private var directory: String { folder.appendingPathComponent("db").path }

  /// Nothing is missed and nothing comes twice, in a database that follows, in `log --follow` and in `watch`.
  @Test(.timeLimit(.minutes(30))) func killedWriters() async throws {
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(at: folder) }
    let first = try await Database.open(at: directory)
    try await first.reference(withPath: "begun").setValue(true)
    try await first.close()

    var options = DatabaseOptions()
    options.followInterval = .milliseconds(5)
    let database = try await Database.open(following: directory, options: options)
    let seen = Seen(database)
    try await seen.begin()
    let log = try Follower(["log", directory, "--follow", "--json"], in: folder)
    let watch = try Follower(["watch", directory, "/", "--json", "--interval", "5"], in: folder)
    defer {
      log.end()
      watch.end()
    }
    #expect(log.waits { $0.contains("/begun") })
    #expect(watch.waits { $0.contains("\"value\"") })

    var random = SeededGenerator(seed: 1)
    var acknowledgedCount = 0
    for cycle in 0..<Scale.ofProcesses(100) {
      acknowledgedCount += try runAndKillWriter(cycle, lines: 1 + Int(random.next() % 300))
    }
    let last = try await Database.open(at: directory)
    try await last.reference(withPath: "ended").setValue(true)
    let end = last.statistics.lastWrite
    let expected = try await last.reference().getData()
    let expectedText = text(expected)
    try await last.close()
    print("\(end) writes, \(acknowledgedCount) of them acknowledged")
    #expect(end >= UInt64(acknowledgedCount))

    // The database: each write once, each listener at the end state.
    #expect(await seen.waitForEnd())
    #expect(seen.lsns == Array(1...end))
    #expect(text(try await database.reference().getData()) == expectedText)
    #expect(text(try await seen.replayed.reference().getData()) == expectedText)
    #expect(seen.total == expected.childSnapshot(forPath: "counters/total").value as? Int)
    #expect(
      seen.posts
        == Set(
          expected.childSnapshot(forPath: "posts").children.compactMap {
            ($0 as? DataSnapshot)?.key
          }))
    #expect(seen.problems == [])
    try await seen.replayed.close()
    try await database.close()

    // The tool.
    #expect(log.waits { $0.contains("/ended") })
    #expect(watch.waits { $0.contains("/ended") })
    log.end()
    watch.end()
    let logged = try log.objects()
    #expect(logged.compactMap { $0["lsn"] as? UInt64 } == Array(1...end))
    #expect(
      logged.allSatisfy {
        $0["lsn"] != nil || ($0["problem"] as? [String: Any])?["tail"] as? Bool == true
      })
    let mirror = Database.inMemory()
    var places: Set<String> = []
    for change in try watch.objects() {
      let (lsn, path) = (change["lsn"] as? UInt64 ?? 0, change["path"] as? String ?? "")
      #expect(places.insert("\(lsn) \(path)").inserted, "\(lsn) \(path) was shown twice")
      try await mirror.reference(withPath: path).setValue(change["value"])
    }
    #expect(text(try await mirror.reference().getData()) == expectedText)
    try await mirror.close()
  }

  private func text(_ snapshot: DataSnapshot) -> String {
    let value = snapshot.valueInExportFormat() ?? [:]
    let data = try? JSONSerialization.data(withJSONObject: value, options: .sortedKeys)
    return String(decoding: data ?? Data(), as: UTF8.self)
  }

  /// Runs a writer until it has acknowledged so many writes, and kills it.
  ///
  /// - Returns: how many it acknowledged.
  private func runAndKillWriter(_ cycle: Int, lines: Int) throws -> Int {
    let process = Process()
    process.executableURL = try LabRun.executable("crashlab")
    process.arguments = [
      "killed-writer", "--directory", directory, "--seed", "7", "--writers", "4", "--durability",
      ["commit", "interval", "none"][cycle % 3], "--draws", "\(cycle * 2)",
    ]
    let output = Pipe()
    process.standardOutput = output
    try process.run()
    var said = Data()
    var lineCount = 0
    while lineCount <= lines {
      let part = output.fileHandleForReading.availableData
      if part.isEmpty { break }
      said += part
      lineCount += part.count { $0 == UInt8(ascii: "\n") }
    }
    kill(process.processIdentifier, SIGKILL)
    said += output.fileHandleForReading.readDataToEndOfFile()
    process.waitUntilExit()
    #expect(process.terminationReason == .uncaughtSignal, "cycle \(cycle)")
    let all = String(decoding: said, as: UTF8.self).split(separator: "\n")
    #expect(!all.contains { $0.hasPrefix("failed") }, "cycle \(cycle)")
    return max(0, all.count - 2)
  }

  /// What a database that follows has shown.
  private final class Seen: Sendable {
    private struct State {
      var lsns: [UInt64] = []
      var total: Int?
      var posts: Set<String> = []
      var problems: [String] = []
      var hasEnded = Set<String>()
    }

    let replayed = Database.inMemory()
    private let database: Database
    private let state = Mutex(State())

    init(_ database: Database) { self.database = database }

    var lsns: [UInt64] { state.withLock { $0.lsns } }
    var total: Int? { state.withLock { $0.total } }
    var posts: Set<String> { state.withLock { $0.posts } }
    var problems: [String] { state.withLock { $0.problems } }

    /// Returns once the first write was seen.
    func begin() async throws {
      let (begun, continuation) = AsyncStream.makeStream(of: Void.self)
      let executor = QueueExecutor()
      Task(executorPreference: executor) { [self] in
        do {
          for try await change in database.changes(since: 0) {
            state.withLock { $0.lsns.append(change.lsn) }
            try await replay(change.path, change.operation)
            continuation.yield()
            if change.path == "/ended" { break }
          }
        } catch {
          note("changes: \(error)")
        }
        end("changes")
      }
      let total = database.reference(withPath: "counters/total")
      total.observe(
        .value,
        with: { [self] snapshot in
          let value = snapshot.value as? Int
          state.withLock { state in
            if let last = state.total, value ?? 0 <= last {
              state.problems.append("the total \(last) was followed by \(value ?? 0)")
            }
            state.total = value
          }
        }, withCancel: { [self] in note("total: \($0)") })
      Task(executorPreference: executor) { [self] in
        do {
          for try await event in database.reference(withPath: "posts").childEvents() {
            state.withLock { state in
              switch event.type {
              case .childAdded:
                if !state.posts.insert(event.snapshot.key).inserted {
                  state.problems.append("\(event.snapshot.key) was added twice")
                }
              case .childRemoved:
                if state.posts.remove(event.snapshot.key) == nil {
                  state.problems.append("\(event.snapshot.key) was removed twice")
                }
              default: break
              }
            }
          }
        } catch {
          note("posts: \(error)")
        }
      }
      database.reference(withPath: "ended").observe(.value) { [self] snapshot in
        if snapshot.exists() { end("listeners") }
      }
      for await _ in begun { break }
    }

    private func note(_ problem: String) { state.withLock { $0.problems.append(problem) } }
    private func end(_ name: String) { _ = state.withLock { $0.hasEnded.insert(name) } }

    /// Whether the changes and the listeners have come to the last write; gives up after ten minutes.
    func waitForEnd() async -> Bool {
      let deadline = ContinuousClock.now + .seconds(600)
      while ContinuousClock.now < deadline {
        if state.withLock({ $0.hasEnded.count == 2 }) { break }
        try? await Task.sleep(for: .milliseconds(2))
      }
      // The iterator of the posts may be behind the listeners by what it has not handled yet.
      guard let posts = try? await database.reference(withPath: "posts").getData() else {
        return false
      }
      while ContinuousClock.now < deadline, self.posts.count != Int(posts.childrenCount) {
        try? await Task.sleep(for: .milliseconds(2))
      }
      return state.withLock { $0.hasEnded.count == 2 }
    }

    private func replay(_ path: String, _ operation: DatabaseChange.Operation)
      async throws
    {
      let target = replayed.reference(withPath: path)
      switch operation {
      case .set(let snapshot): try await target.setValue(snapshot.valueInExportFormat())
      case .remove: try await target.removeValue()
      case .increment(let delta):
        if case .integer(let number) = delta { try await target.increment(by: Int(number)) }
      case .setPriority: break
      case .update(let entries):
        // One after the other: nothing reads between them.
        for entry in entries { try await replay(entry.path, entry.operation) }
      }
    }
  }

  /// `dendro` at work, with its output in a file.
  private final class Follower {
    private let process = Process()
    private let output: URL

    init(_ arguments: [String], in folder: URL) throws {
      output = folder.appendingPathComponent(arguments[0])
      try Data().write(to: output)
      process.executableURL = try LabRun.executable("dendro")
      process.arguments = arguments
      process.standardOutput = try FileHandle(forWritingTo: output)
      try process.run()
    }

    private var text: String {
      String(decoding: (try? Data(contentsOf: output)) ?? Data(), as: UTF8.self)
    }

    /// Waits until the output is as wanted, or the process has ended; gives up after two minutes.
    func waits(for isWanted: (String) -> Bool) -> Bool {
      let deadline = ContinuousClock.now + .seconds(120)
      while process.isRunning, ContinuousClock.now < deadline {
        if isWanted(text) { return true }
        usleep(2000)
      }
      return isWanted(text)
    }

    func end() {
      if process.isRunning { process.terminate() }
      process.waitUntilExit()
    }

    func objects() throws -> [[String: Any]] {
      try text.split(separator: "\n").map { line in
        try JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any] ?? [:]
      }
    }
  }
}
