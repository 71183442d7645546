import Dendro
import DendroRules
import DendroServer
import DendroTestSupport
import Foundation
import Synchronization
import Testing

/// Writers that race for the same places, each of which rules let only some have.
@Suite("serving: racing writers")
struct RacingWritersTests {
  private static let text = """
    {"rules": {
      ".read": true,
      // Each write is one above the last, and names its writer.
      "count": {
        ".write": "auth != null",
        ".validate": "newData.child('n').val() === (data.exists() ? data.child('n').val() : 0) + 1
          && newData.child('by').val() === auth.uid"
      },
      // Only the first write of a place is allowed.
      "first": {"$place": {
        ".write": "!data.exists()", ".validate": "newData.child('by').val() === auth.uid"
      }},
      // A pool is used ten times at most.
      "pools": {"$pool": {
        ".write": "newData.child('by').val() === auth.uid",
        "used": {
          ".validate": "newData.val() <= 10 && newData.val() === (data.exists() ? data.val() : 0) + 1"
        }
      }},
      // A rule that looks at nothing but the sum.
      "sum": {
        ".write": "newData.child('by').val() === auth.uid",
        "n": {".validate": "newData.val() % 3 !== 0"}
      }
    }}
    """
  private static let clientCount = 8

  @Test("the log has no write that the rules forbid at its place")
  func race() async throws {
    let seed = UInt64.random(in: 0...(.max))
    let folder = try TemporaryFolder()
    let database = try await Database.open(at: folder.path + "/database")
    var options = DatabaseServerOptions.patient
    options.rules = try Rules(Self.text)
    let server = try await DatabaseServer.start(serving: database, options: options)
    let port = server.port
    let count = Scale.scaled(300_000) / Self.clientCount
    let counts = Mutex((accepted: 0, refused: 0))
    let failure = Mutex<(any Error)?>(nil)
    // Of their own: each of them blocks.
    let threads = DispatchGroup()
    for number in 0..<Self.clientCount {
      threads.enter()
      Thread.detachNewThread {
        defer { threads.leave() }
        do {
          let generator = SeededGenerator(seed: seed &+ UInt64(number))
          let writer = try Writer(port: port, number, generator)
          for _ in 0..<count {
            let isAccepted = try writer.write()
            counts.withLock {
              if isAccepted { $0.accepted += 1 } else { $0.refused += 1 }
            }
          }
        } catch {
          failure.withLock { $0 = error }
        }
      }
    }
    await withCheckedContinuation { end in threads.notify(queue: .global()) { end.resume() } }
    if let error = failure.withLock({ $0 }) { throw error }
    await server.stop()
    let logged = try await check(database)
    let (accepted, refused) = counts.value
    print("racing writers: \(accepted) accepted, \(refused) refused")
    #expect(logged == accepted && accepted > 0 && refused > 0, "seed \(seed)")
    try await database.close()
  }

  /// Replays the log through the rules.
  ///
  /// - Returns: how many writes it has.
  private func check(_ database: Database) async throws -> Int {
    let rules = try Rules(Self.text)
    let last = try await database.historyRange().newest
    var tree = JSONTree()
    var writeCount = 0
    for try await change in database.changes(since: 0) {
      let now = Int64(change.time.timeIntervalSince1970 * 1000)
      let new: JSONTree
      var request: RuleRequest
      switch change.operation {
      case .set(let value):
        new = try tree.setting(change.path, to: value.json())
        request = try RuleRequest(setting: change.path, now: now)
      case .update(let entries):
        let places = entries.map { String($0.path.dropFirst(change.path.count + 1)) }
        let values = entries.map { Self.json($0.operation) }
        let members = zip(places, values).map { "\"\($0)\":\($1)" }
        new = try tree.updating(change.path, with: "{\(members.joined(separator: ","))}")
        request = try RuleRequest(updating: change.path, children: places, now: now)
      default:
        Issue.record("no client writes \(change.operation)")
        continue
      }
      let parts = change.path.split(separator: "/")
      var place = new
      for part in parts { place = place.child(String(part)) }
      guard case .string(let writer)? = place.child("by").scalar else {
        Issue.record("the write at \(change.path) names no writer")
        continue
      }
      request.auth = RuleAuth(userID: String(writer))
      let verdict = rules.decide(request, data: tree, newData: new)
      #expect(verdict.isAllowed, "write \(change.lsn) of \(writer) at \(change.path)")
      tree = new
      writeCount += 1
      if change.lsn == last { break }
    }
    return writeCount
  }

  /// The value of a place of an update.
  private static func json(_ operation: DatabaseChange.Operation) -> String {
    switch operation {
    case .set(let value): value.json()
    case .increment(.integer(let delta)): "{\".sv\":{\"increment\":\(delta)}}"
    default: "null"
    }
  }

  /// A client that tries to be the one whose write the rules let in.
  private final class Writer {
    private let http: HTTPClient
    /// Nil for one that writes by REST: requests are handled by several threads, and sockets by one.
    private let socket: WebSocketClient?
    private let name: String
    private var generator: SeededGenerator
    private var number = 0
    private var place = 0
    private var pool = 0

    init(port: UInt16, _ number: Int, _ generator: SeededGenerator) throws {
      http = try HTTPClient(port: port)
      name = "w\(number)"
      self.generator = generator
      socket = number % 4 == 0 ? try WebSocketClient(port: port) : nil
      _ = try socket?("auth", "{\"cred\":\"\(SignedTokens.unsigned(name))\"}")
    }

    /// - Returns: whether it was let in.
    func write() throws -> Bool {
      switch generator.below(5) {
      case 0: try count()
      case 1: try first()
      case 2: try use()
      default: try add()
      }
    }

    /// The number behind the one that it knows; every writer knows an old one sometimes.
    private func count() throws -> Bool {
      let isAccepted = try put("p", "/count", "{\"n\":\(number + 1),\"by\":\"\(name)\"}")
      if isAccepted {
        number += 1
      } else {
        number = Int(try http("GET", "/count/n.json?ns=app").body) ?? 0
      }
      return isAccepted
    }

    private func first() throws -> Bool {
      place += generator.below(3)
      return try put("p", "/first/k\(place)", "{\"by\":\"\(name)\"}")
    }

    /// Counts itself in a pool, or goes on to the next one if it is full.
    private func use() throws -> Bool {
      let members = "\"used\":{\".sv\":{\"increment\":1}},\"by\":\"\(name)\""
      let isAccepted = try put("m", "/pools/p\(pool)", "{\(members)}")
      if !isAccepted { pool += 1 }
      return isAccepted
    }

    private func add() throws -> Bool {
      let delta = 1 + generator.below(2)
      let members = "\"n\":{\".sv\":{\"increment\":\(delta)}},\"by\":\"\(name)\""
      return try put("m", "/sum", "{\(members)}")
    }

    private func put(_ action: String, _ path: String, _ data: String) throws -> Bool {
      guard let socket else {
        let method = action == "m" ? "PATCH" : "PUT"
        let token = SignedTokens.unsigned(name)
        let status = try http(method, "\(path).json?ns=app&auth=\(token)", data).status
        try #require(status == 200 || status == 401)
        return status == 200
      }
      let answer = try socket(action, "{\"p\":\"\(path)\",\"d\":\(data)}").last ?? ""
      if answer.contains("permission_denied") { return false }
      try #require(answer == "{\"s\":\"ok\",\"d\":\"\"}", "\(answer)")
      return true
    }
  }
}
