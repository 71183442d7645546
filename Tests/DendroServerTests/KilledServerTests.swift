import Dendro
import DendroEngine
import DendroPlatform
import DendroTestSupport
import DendroTree
import Dispatch
import Foundation
import Synchronization
import Testing

/// A server that is killed again and again under clients that write, listen and leave words for their end.
@Suite("serving: a killed server", .serialized)
struct KilledServerTests {
  /// 200 kills at full length.
  @Test("what was acknowledged survives, and what clients have left behind is written")
  func killed() async throws {
    let folder = try TemporaryFolder()
    let directory = folder.path + "/data"
    let clients = (0..<4).map { KilledClient($0) }
    var generator = SeededGenerator(seed: 13)
    for round in 1...Scale.ofProcesses(200) {
      let server = try ServerProcess(directory)
      try await Self.judge(clients, server)
      let acknowledgements = DispatchSemaphore(value: 0)
      let done = DispatchGroup()
      let port = server.port
      for client in clients {
        DispatchQueue(label: "client").async(group: done) {
          client.run(round, port) { acknowledgements.signal() }
        }
      }
      // Somewhere in the beginning, or later.
      let count = 1 + generator.below(generator.oneIn(4) ? 12 : 200)
      let isAlive = await Self.wait(for: count, acknowledgements)
      #expect(isAlive, "round \(round)")
      server.kill()
      await withCheckedContinuation { continuation in
        done.notify(queue: .global()) { continuation.resume() }
      }
    }
    let server = try ServerProcess(directory)
    try await Self.judge(clients, server)
    #expect(server.stop() == 0)
    // Nothing is left to be written.
    let database = try await Database.open(at: directory + "/app")
    #expect(try database.servedEngine().systemNode(at: .root).isEmpty)
    try await database.close()
  }

  private static func wait(for count: Int, _ semaphore: DispatchSemaphore) async -> Bool {
    await withCheckedContinuation { continuation in
      DispatchQueue(label: "waiter").async {
        for _ in 0..<count where semaphore.wait(timeout: .now() + 60) == .timedOut {
          return continuation.resume(returning: false)
        }
        continuation.resume(returning: true)
      }
    }
  }

  /// Holds what the server has against what the clients know.
  private static func judge(_ clients: [KilledClient], _ server: ServerProcess) async throws {
    let root = try object(try HTTPClient(port: server.port)("GET", "/.json?ns=app").body) ?? [:]
    let data = root["data"] as? [String: Any] ?? [:]
    let presence = root["presence"] as? [String: Any] ?? [:]
    let left = root["left"] as? [String: Any] ?? [:]
    for client in clients {
      client.check(data, presence["c\(client.number)"] as? [String: Any])
      client.check(left: left["c\(client.number)"] as? [String: Any] ?? [:])
    }
    // Listeners that come back end with the same tree.
    for client in clients {
      let listed = try client.listen(server.port)
      #expect(listed == data.compactMapValues { $0 as? Int }, "client \(client.number)")
    }
  }

  static func object(_ text: String) throws -> [String: Any]? {
    try JSONSerialization.jsonObject(with: Data(text.utf8), options: .fragmentsAllowed)
      as? [String: Any]
  }
}

/// One client over all rounds: what it has written, and what the server has sent.
///
/// Unchecked: the test uses it between rounds, and its own thread during one.
private final class KilledClient: @unchecked Sendable {
  let number: Int
  private var lastNumber = 0
  /// The last value of each key that was acknowledged, and the last that was sent.
  private var acknowledged: [String: Int] = [:]
  private var sent: [String: Int] = [:]
  /// What the client knows of its presence.
  private var presence = Presence.unknown
  /// The rounds at whose end an increment was asked for, and those for which that was acknowledged.
  private var askedRounds: Set<Int> = []
  private var acknowledgedRounds: Set<Int> = []
  /// The children of `data`, made from the pushes.
  private var seen: [String: Int] = [:]

  private enum Presence {
    /// The connection ended before the answers came.
    case unknown
    /// The words for the end were acknowledged, and then the presence of the round.
    case leaves(Int)
    /// They were taken back, which was acknowledged.
    case stays(Int)
  }

  init(_ number: Int) { self.number = number }

  /// Ends when the server does.
  func run(_ round: Int, _ port: UInt16, _ acknowledge: () -> Void) {
    presence = .unknown
    do {
      let hasLeft = try work(round, port, acknowledge)
      if hasLeft { try stayAway(round, port, acknowledge) }
    } catch {
      // The server was killed.
    }
  }

  /// - Returns: whether the client has left in the middle of the round.
  private func work(_ round: Int, _ port: UInt16, _ acknowledge: () -> Void) throws -> Bool {
    let client = try WebSocketClient(port: port)
    func ask(_ action: String, _ body: String) throws -> Bool {
      let messages = try client(action, body)
      for push in messages.dropLast() { take(push) }
      return messages.last?.hasPrefix("{\"s\":\"ok\"") == true
    }
    let place = "\"p\":\"/presence/c\(number)\""
    seen = [:]
    guard try ask("q", "{\"p\":\"/data\",\"h\":\"\"}"),
      try ask("p", "{\(place),\"d\":{\"round\":\(round)}}"),
      try ask("o", "{\(place),\"d\":{\"round\":\(round),\"gone\":true}}")
    else { return false }
    askedRounds.insert(round)
    let increment = "{\".sv\":{\"increment\":1}}"
    guard try ask("o", "{\"p\":\"/left/c\(number)/r\(round)\",\"d\":\(increment)}")
    else { return false }
    acknowledgedRounds.insert(round)
    presence = .leaves(round)
    acknowledge()
    if number == 2 {
      presence = .unknown
      guard try ask("oc", "{\(place),\"d\":null}") else { return false }
      presence = .stays(round)
      acknowledge()
    }
    var count = 0
    while true {
      lastNumber += 1
      count += 1
      let key = "c\(number)k\(lastNumber % 30)"
      sent[key] = lastNumber
      guard try ask("p", "{\"p\":\"/data/\(key)\",\"d\":\(lastNumber)}") else { return false }
      acknowledged[key] = lastNumber
      // The own write was pushed before its answer.
      #expect(seen[key] == lastNumber)
      acknowledge()
      // One client leaves and comes back.
      if number == 3, count == 10 { return true }
    }
  }

  /// After leaving: another connection sees what was left behind, written by the server.
  private func stayAway(_ round: Int, _ port: UInt16, _ acknowledge: () -> Void) throws {
    let watcher = try WebSocketClient(port: port)
    while true {
      let answer = try watcher("g", "{\"p\":\"/presence/c\(number)/gone\",\"q\":{}}")
      if answer == ["{\"s\":\"ok\",\"d\":true}"] { break }
    }
    while true {
      _ = try watcher("p", "{\"p\":\"/other/c\(number)\",\"d\":\(round)}")
      acknowledge()
    }
  }

  /// A push, as `"a":"d","b":{"p":"data/k","d":5}`.
  private func take(_ push: String) {
    guard let message = try? KilledServerTests.object("{\(push)}"),
      let body = message["b"] as? [String: Any], let path = body["p"] as? String
    else { return }
    if path == "data" {
      let children = body["d"] as? [String: Any] ?? [:]
      if message["a"] as? String == "d" { seen = [:] }
      for (key, value) in children { seen[key] = value as? Int }
    } else if path.hasPrefix("data/") {
      seen[String(path.dropFirst(5))] = body["d"] as? Int
    }
  }

  /// What a listener has that begins now.
  func listen(_ port: UInt16) throws -> [String: Int] {
    seen = [:]
    for push in try WebSocketClient(port: port)("q", "{\"p\":\"/data\",\"h\":\"\"}").dropLast() {
      take(push)
    }
    return seen
  }

  /// Each end that was acknowledged is counted once, and no other one twice.
  func check(left: [String: Any]) {
    let counts = left.compactMapValues { $0 as? Int }
    #expect(
      counts.count == left.count && counts.values.allSatisfy { $0 == 1 }, "c\(number): \(left)")
    let rounds = Set(counts.keys.compactMap { Int($0.dropFirst()) })
    #expect(
      rounds.isSuperset(of: acknowledgedRounds) && rounds.isSubset(of: askedRounds), "c\(number)")
  }

  func check(_ data: [String: Any], _ present: [String: Any]?) {
    for (key, value) in acknowledged {
      let found = data[key] as? Int ?? 0
      #expect(
        found >= value && found <= sent[key] ?? 0, "\(key) is \(found), acknowledged \(value)")
    }
    switch presence {
    case .unknown: break
    case .leaves(let round):
      #expect(present?["round"] as? Int == round && present?["gone"] as? Bool == true, "c\(number)")
    case .stays(let round):
      #expect(present?["round"] as? Int == round && present?["gone"] == nil, "c\(number)")
    }
  }
}
