import Dendro
import DendroPlatform
import DendroServer
import DendroTestSupport
import Foundation
import Testing

/// The databases of a program that names a server by its URL, or an emulator: each life is a process of its own.
@Suite("synced databases: settings of a program")
struct KeptDatabaseTests {
  private let folder: TemporaryFolder
  /// Where the program keeps its data.
  private var home: String { folder.path + "/data" }

  init() throws { folder = try TemporaryFolder() }

  /// One life of the program.
  private final class Life {
    private let process = Process()
    /// A file, since what holds a pipe open may be another process that was started meanwhile.
    private let output: String

    init(_ folder: TemporaryFolder, _ steps: [String]) throws {
      let own = try FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")
      process.executableURL = URL(fileURLWithPath: own).deletingLastPathComponent()
        .appending(path: "crashlab")
      process.arguments = ["kept-database"] + steps
      var environment = ProcessInfo.processInfo.environment
      environment["HOME"] = folder.path
      environment["XDG_DATA_HOME"] = folder.path + "/data"
      process.environment = environment
      output = try folder.write("output-\(UUID().uuidString)", "")
      // Errors too, of which no step is to bring about any.
      let handle = FileHandle(forWritingAtPath: output)
      process.standardOutput = handle
      process.standardError = handle
      try process.run()
    }

    deinit { if process.isRunning { kill() } }

    var lines: [String] {
      let text = FileManager.default.contents(atPath: output) ?? Data()
      return String(decoding: text, as: UTF8.self).split(separator: "\n").map { String($0) }
    }

    func waitUntil(_ line: String) async throws {
      try await eventually { lines.contains(line) || !process.isRunning }
      #expect(lines.contains(line), "\(lines)")
    }

    /// SIGKILL.
    func kill() {
      DendroPlatform.kill(process.processIdentifier, SIGKILL)
      process.waitUntilExit()
    }

    /// Waits until it has ended by itself.
    func finish() async throws -> [String] {
      try await eventually { !process.isRunning }
      if process.isRunning { kill() }
      #expect(process.terminationStatus == 0, "\(lines)")
      return lines
    }
  }

  /// A life that ends by itself.
  private func run(_ steps: String...) async throws -> [String] {
    try await Life(folder, steps).finish()
  }

  /// The directories of the program.
  private func directories() throws -> [String] {
    try FileManager.default.contentsOfDirectory(atPath: home).sorted()
  }

  private func url(_ port: Int) -> String { "http://127.0.0.1:\(port)?ns=x" }

  /// Serves a database in memory.
  private func serving(
    at port: Int, _ body: (Database) async throws -> Void
  ) async throws {
    try await DendroSyncTests.serving {
      $0.port = UInt16(port)
    } _: { origin, _ in
      try await body(origin)
    }
  }

  private func value(_ origin: Database, _ path: String) async throws -> Int? {
    try await origin.reference(withPath: path).getData().int
  }

  @Test(
    "with isPersistenceEnabled what a program has written offline outlives it, shows at once, and is sent",
    .timeLimit(.minutes(5)))
  func persistence() async throws {
    let port = try ReservedPort.take()
    let steps = ["enable", "database=\(url(port))", "persist"]
    let name = "crashlab@127.0.0.1_\(port)_x_synced_http"
    let first = try Life(folder, steps + ["where", "write=a/b", "synchronize", "stay"])
    try await first.waitUntil("stays")
    first.kill()
    #expect(
      first.lines == ["directory \(home)/\(name)", "url http://127.0.0.1:\(port)", "stays"])
    let second = try Life(folder, steps + ["show=a/b", "send", "stay"])
    // There is no server yet.
    try await second.waitUntil("shows a/b 1")
    try await serving(at: port) { origin in
      try await second.waitUntil("stays")
      #expect(try await value(origin, "a/b") == 1)
    }
    second.kill()
    #expect(second.lines == ["shows a/b 1", "sent", "stays"])
    #expect(try directories() == [name])
    // It is known to be made, and is not sent again.
    try await serving(at: port) { origin in
      let lines = try await run(
        "enable", "database=\(url(port))", "persist", "write=c", "send")
      #expect(lines == ["sent"])
      #expect(try await value(origin, "a/b") == nil)
      #expect(try await value(origin, "c") == 1)
    }
  }

  @Test("without isPersistenceEnabled nothing is kept")
  func memory() async throws {
    let port = try ReservedPort.take()
    let steps = ["enable", "database=\(url(port))"]
    #expect(
      try await Life(folder, steps + ["where", "write=a", "synchronize"]).finish().first
        == "memory")
    #expect(
      try await Life(folder, steps + ["show=a"]).finish() == ["shows a nothing"])
    #expect(!FileManager.default.fileExists(atPath: home))
  }

  @Test(
    "an emulator that is named after DendroSync was enabled gets the writes, and has a directory")
  func emulator() async throws {
    let (other, port) = (try ReservedPort.take(), try ReservedPort.take())
    let name = "crashlab@127.0.0.1_\(port)_x_synced_http"
    try await serving(at: port) { origin in
      // Whichever comes first.
      for (path, settings) in [
        ("a", ["persist", "emulator=\(port)"]), ("b", ["emulator=\(port)", "persist"]),
      ] {
        let steps = ["enable", "database=\(url(other))"] + settings
        let lines = try await Life(folder, steps + ["where", "write=\(path)", "send"]).finish()
        #expect(lines == ["directory \(home)/\(name)", "url http://127.0.0.1:\(port)", "sent"])
        #expect(try await value(origin, path) == 1)
      }
    }
    #expect(try directories().contains(name))
  }

  @Test("an emulator of the default database owns the data, and what is in its directory stays")
  func emulatorOfDefault() async throws {
    let port = try ReservedPort.take()
    let own = try await run("database", "where", "write=a", "send", "show=a")
    #expect(own == ["directory \(home)/crashlab", "url dendro://localhost", "sent", "shows a 1"])
    try await serving(at: port) { origin in
      let lines = try await run(
        "enable", "database", "emulator=\(port)", "where", "write=b", "send")
      #expect(lines == ["memory", "url http://127.0.0.1:\(port)", "sent"])
      #expect(try await value(origin, "a") == nil)
      #expect(try await value(origin, "b") == 1)
    }
    let later = try await run("database", "show=a", "show=b")
    #expect(later == ["shows a 1", "shows b <null>"])
  }

  @Test(
    "as long as DendroSync is not enabled, a server's URL and an emulator are names of local data")
  func notEnabled() async throws {
    let port = try ReservedPort.take()
    try await serving(at: port) { origin in
      let named = try await run("database=\(url(port))", "where", "write=a", "send", "show=a")
      #expect(
        named == [
          "directory \(home)/crashlab@127.0.0.1_\(port)_x", "url http://127.0.0.1:\(port)", "sent",
          "shows a 1",
        ])
      let emulated = try await run(
        "database", "emulator=\(port)", "where", "write=b", "send", "show=b")
      #expect(
        emulated == [
          "directory \(home)/crashlab", "url http://127.0.0.1:\(port)", "sent", "shows b 1",
        ])
      #expect(try await origin.reference().getData().childrenCount == 0)
    }
    // With it, the URL is that of the server, and the local data are others.
    let synced = try await run("enable", "database=\(url(port))", "persist", "where", "show=a")
    #expect(
      synced == [
        "directory \(home)/crashlab@127.0.0.1_\(port)_x_synced_http",
        "url http://127.0.0.1:\(port)", "shows a nothing",
      ])
  }
}
