import Dendro
import DendroPlatform
import DendroTestSupport
import Foundation
import Synchronization
import Testing

/// Clients and their server, each a process, all of which are killed over and over, and whose lines are cut.
@Suite("synced databases: killed clients")
struct KilledClientTests {
  /// One life of a client.
  private final class Client {
    private let process = Process()
    private let input = Pipe()
    /// A file, since what holds a pipe open may be another process that was started meanwhile.
    private let output: String

    init(_ directory: String, _ url: String, _ name: String, seed: UInt64, life: Int) throws {
      let own = try FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")
      process.executableURL = URL(fileURLWithPath: own).deletingLastPathComponent()
        .appending(path: "crashlab")
      process.arguments = ["sync-client", directory, url, name, "\(seed)", "\(life)"]
      process.standardInput = input
      output = "\(directory).\(life)"
      try Data().write(to: URL(fileURLWithPath: output))
      process.standardOutput = FileHandle(forWritingAtPath: output)
      process.standardError = FileHandle.nullDevice
      try process.run()
    }

    deinit { if process.isRunning { _ = kill() } }

    /// SIGKILL.
    ///
    /// - Returns: the lines that it had written.
    func kill() -> [Substring] {
      DendroPlatform.kill(process.processIdentifier, SIGKILL)
      process.waitUntilExit()
      return lines
    }

    private var lines: [Substring] {
      let text = FileManager.default.contents(atPath: output) ?? Data()
      return String(decoding: text, as: UTF8.self).split(separator: "\n")
    }

    func say(_ line: String) throws {
      try input.fileHandleForWriting.write(contentsOf: Data((line + "\n").utf8))
    }

    /// Waits until the server has answered all that it has written.
    func waitUntilSent() async throws {
      try await wait { lines.contains("sent") || !process.isRunning }
    }

    /// Waits until it has ended.
    func finish() async throws -> [Substring] {
      try await wait { !process.isRunning }
      let isStuck = process.isRunning
      return kill() + (isStuck ? ["it does not end"] : [])
    }

    private func wait(_ condition: () -> Bool) async throws {
      let deadline = ContinuousClock.now + .seconds(300)
      while !condition(), ContinuousClock.now < deadline {
        try await Task.sleep(for: .milliseconds(2))
      }
    }
  }

  /// What a client has said in one life.
  private struct Said {
    var tried = 0
    var acknowledged: Set<Int> = []
    var isSent = false
    var seesTheSame = false
    var begunCount = 0
    var committedCount = 0
    var failures: [String] = []
    var errors: [Substring] = []

    init(_ lines: [Substring]) {
      for line in lines {
        let words = line.split(separator: " ", maxSplits: 1)
        switch words.first {
        case "try": tried = Int(words[1]) ?? 0
        case "ack": acknowledged.insert(Int(words[1]) ?? 0)
        case "sent": isSent = true
        case "same": seesTheSame = true
        case "begin": begunCount += 1
        case "commit": committedCount += 1
        case "fail": failures.append(String(words.last ?? ""))
        default: errors.append(line)
        }
      }
    }
  }

  @Test(
    "what was acknowledged is there, each write once and in its order, and in the end all see the same",
    arguments: 1...UInt64(Scale.scaled(1000)))
  func kills(seed: UInt64) async throws {
    var generator = SeededGenerator(seed: seed)
    let folder = try TemporaryFolder()
    var server = try ServerProcess(folder.path + "/server")
    let proxy = try LineCutter(to: server.port, delayed: 20)
    defer { withExtendedLifetime(proxy) {} }
    let url = "http://127.0.0.1:\(proxy.port)?ns=server"
    // Most runs have few: what each does then is seen by the others at once.
    let names = (0..<2 + generator.below(generator.oneIn(8) ? 7 : 3)).map { "c\($0)" }
    let judge = synced(proxy.port, namespace: "server", connects: false)
    var lives: [String: [Said]] = [:]
    for life in 0..<3 {
      let clients = try names.map { name in
        try Client("\(folder.path)/\(name)", url, name, seed: seed, life: life)
      }
      if life < 2 {
        for _ in 0..<1 + generator.below(3) {
          let lastFrame = [LineCutter.LastFrame.cut, .lost, .repeated][generator.below(3)]
          proxy.cut(after: generator.below(20_000), lastFrame)
          try await Task.sleep(for: .milliseconds(20 + generator.below(100)))
        }
        if generator.oneIn(2) {
          server.kill()
          server = try ServerProcess(folder.path + "/server")
          proxy.lead(to: server.port)
          try await Task.sleep(for: .milliseconds(generator.below(100)))
        }
        for (name, client) in zip(names, clients) {
          lives[name, default: []].append(Said(client.kill()))
        }
      } else {
        try await Task.sleep(for: .milliseconds(generator.below(100)))
        proxy.cut(after: nil)
        for client in clients { try client.say("end") }
        for client in clients { try await client.waitUntilSent() }
        let data = try await judge.reference().getData()
        let json = try JSONSerialization.data(
          withJSONObject: data.value ?? NSNull(), options: .fragmentsAllowed)
        let path = folder.path + "/data.json"
        try json.write(to: URL(fileURLWithPath: path))
        for client in clients { try client.say(path) }
        for (name, client) in zip(names, clients) {
          lives[name, default: []].append(Said(try await client.finish()))
        }
      }
    }
    let root = try await judge.reference().getData()
    var total = 0
    for name in names {
      var made = 0
      var (begun, committed) = (0, 0)
      for (life, said) in (lives[name] ?? []).enumerated() {
        #expect(said.errors.isEmpty, "seed \(seed): \(said.errors)")
        let marks = root.childSnapshot(forPath: "made/\(name)/life\(life)")
        let numbers = marks.compactMap { Int($0.key.dropFirst()) }
        made += numbers.count
        let counted = root.childSnapshot(forPath: "counts/\(name)/life\(life)").value as? Int ?? 0
        #expect(
          counted == numbers.count,
          "seed \(seed): \(name) counts \(counted) of \(numbers.count) in life \(life)")
        #expect(
          numbers == Array(1..<1 + numbers.count), "seed \(seed): a write is missing between others"
        )
        #expect(numbers.count <= said.tried, "seed \(seed)")
        #expect(
          said.acknowledged.isSubset(of: numbers), "seed \(seed): an acknowledged write is lost")
        if life == 2 {
          #expect(said.isSent && said.seesTheSame, "seed \(seed): \(name) does not see the same")
          #expect(numbers.count == said.tried, "seed \(seed)")
          #expect(
            said.committedCount + said.failures.count == said.begunCount,
            "seed \(seed): a transaction has not ended")
        }
        #expect(
          said.failures.allSatisfy { $0 == "maxretry" }, "seed \(seed): \(said.failures)")
        begun += said.begunCount - said.failures.count
        committed += said.committedCount
      }
      let transacted = root.childSnapshot(forPath: "transactions/\(name)").value as? Int ?? 0
      #expect((committed...begun).contains(transacted), "seed \(seed): transactions of \(name)")
      total += made
    }
    #expect(root.childSnapshot(forPath: "total").value as? Int ?? 0 == total, "seed \(seed)")
    try await judge.close()
    _ = server.stop()
  }
}
