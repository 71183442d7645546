import Dendro
import DendroCluster
import DendroEngine
import DendroStorage
import DendroTestSupport
import DendroTree
import Dispatch
import Foundation
import Synchronization
import Testing

/// What clients did and were told.
private final class ClientHistory: Sendable {
  struct Operation: Sendable {
    enum Outcome: Sendable { case acknowledged, refused, undecided }

    let value: Int
    let begun: ContinuousClock.Instant
    let ended: ContinuousClock.Instant
    let outcome: Outcome
  }

  /// What one session has seen, in its order: values of the register that it read, or has written.
  struct Session: Sendable {
    let name: String
    var values: [Int] = []
    /// Whether it knows that what it has registered for its end is kept; nil: it does not know.
    var hasRegistered: Bool?
  }

  private let state = Mutex((operations: [Operation](), sessions: [Session](), next: 0))

  var operations: [Operation] { state.withLock { $0.operations } }
  var sessions: [Session] { state.withLock { $0.sessions } }
  var acknowledgedCount: Int {
    state.withLock { $0.operations.count { $0.outcome == .acknowledged } }
  }

  /// A value that no other write has.
  func newValue() -> Int {
    state.withLock { state in
      state.next += 1
      return state.next
    }
  }

  func add(_ operation: Operation) { state.withLock { $0.operations.append(operation) } }
  func add(_ session: Session) { state.withLock { $0.sessions.append(session) } }
}

/// A server that is killed and started again.
private final class Place: Sendable {
  let proxy: PostgresProxy
  let port = Atomic<UInt16>(0)

  init(_ proxy: PostgresProxy) { self.proxy = proxy }
}

/// One client, on a thread of its own, which goes from server to server.
private final class HistoryClient: @unchecked Sendable {
  enum Kind: CaseIterable {
    case rest
    case socket
    /// Gives its writes numbers, and sends each until it has an answer.
    case numbered
  }

  private let kind: Kind
  private let id: Int
  private let places: [Place]
  private let history: ClientHistory
  private let isEnded: () -> Bool
  private var random: SeededGenerator
  private var lastNumber = 0
  private var sessionCount = 0

  init(
    _ kind: Kind, _ id: Int, _ places: [Place], _ history: ClientHistory, _ seed: UInt64,
    isEnded: @escaping () -> Bool
  ) {
    self.kind = kind
    self.id = id
    self.places = places
    self.history = history
    self.isEnded = isEnded
    random = SeededGenerator(seed: seed)
  }

  func run() {
    while !isEnded() {
      let port = places[random.below(places.count)].port.load(ordering: .relaxed)
      switch kind {
      case .rest: rest(port)
      case .socket, .numbered: session(port)
      }
      usleep(10_000)
    }
  }

  private func note(
    _ value: Int, _ begun: ContinuousClock.Instant, _ outcome: ClientHistory.Operation.Outcome
  ) {
    history.add(.init(value: value, begun: begun, ended: .now, outcome: outcome))
  }

  private static func update(_ value: Int) -> String {
    "{\"register\":\(value),\"count\":{\".sv\":{\"increment\":1}}}"
  }

  private func rest(_ port: UInt16) {
    guard let http = try? HTTPClient(port: port) else { return }
    for _ in 0..<(1 + random.below(20)) where !isEnded() {
      let value = history.newValue()
      let begun = ContinuousClock.now
      switch try? http("PATCH", "/h.json", Self.update(value)).status {
      case 200: note(value, begun, .acknowledged)
      case 503: note(value, begun, .refused)
      default: return note(value, begun, .undecided)
      }
      usleep(useconds_t(1_000 + random.below(10_000)))
    }
  }

  /// A write that is to be sent again.
  private var unanswered: (value: Int, number: Int, begun: ContinuousClock.Instant)?

  private func session(_ port: UInt16) {
    guard let client = try? WebSocketClient(port: port, "/.ws?v=5&ns=default") else { return }
    sessionCount += 1
    var session = ClientHistory.Session(name: "\(id)-\(sessionCount)")
    defer { history.add(session) }
    let left = "{\"p\":\"/left/\(session.name)\",\"d\":{\".sv\":{\"increment\":1}}}"
    guard let registered = try? client("o", left).last else { return }
    session.hasRegistered = registered.hasPrefix("{\"s\":\"ok\"") ? true : nil
    for _ in 0..<(1 + random.below(30)) where !isEnded() {
      if random.oneIn(4) {
        guard let answer = try? client("g", "{\"p\":\"/h/register\",\"q\":{}}").last else { return }
        if let value = Int(answer.dropFirst("{\"s\":\"ok\",\"d\":".count).dropLast()) {
          session.values.append(value)
        }
      } else {
        guard write(client, &session) else { return }
      }
      usleep(useconds_t(1_000 + random.below(10_000)))
    }
  }

  /// - Returns: false if the connection is lost.
  private func write(_ client: WebSocketClient, _ session: inout ClientHistory.Session) -> Bool {
    var name = ""
    let isNew = unanswered == nil
    let (value, begun): (Int, ContinuousClock.Instant)
    if kind == .numbered {
      if unanswered == nil {
        lastNumber += 1
        unanswered = (history.newValue(), lastNumber, .now)
      }
      let number: Int
      (value, number, begun) = unanswered ?? (0, 0, .now)
      let digits = String(id, radix: 16)
      let own = String(repeating: "0", count: 32 - digits.count) + digits
      name = ",\"n\":{\"c\":\"\(own)\",\"i\":\"0000000000000001\",\"n\":\(number),\"l\":\(number)}"
    } else {
      (value, begun) = (history.newValue(), .now)
    }
    let body = "{\"p\":\"/h\",\"d\":\(Self.update(value))\(name)}"
    guard let answer = try? client("m", body).last else {
      if kind == .socket { note(value, begun, .undecided) }
      return false
    }
    if answer.hasPrefix("{\"s\":\"ok\"") {
      note(value, begun, .acknowledged)
      // What was sent before may have been written before the session began.
      if isNew { session.values.append(value) }
      unanswered = nil
    } else if kind == .socket {
      // It does not say whether the write may be there.
      note(value, begun, .undecided)
    }
    return true
  }
}

@Suite(
  "serving: histories of a cluster's clients",
  .enabled(if: PostgresServer.isInstalled, "needs PostgreSQL"), .serialized)
struct ClusterClientHistoryTests {
  private let cluster: ClusterServers

  init() throws { cluster = try ClusterServers() }

  private final class Flag: Sendable {
    private let value = Atomic<Bool>(false)
    var isSet: Bool { value.load(ordering: .relaxed) }
    func set() { value.store(true, ordering: .relaxed) }
  }

  private final class Servers {
    var processes: [ServerProcess] = []
  }

  private func start(_ number: Int, _ place: Place) throws -> ServerProcess {
    let server = try cluster.start("\(number)", at: place.proxy.address)
    place.port.store(server.port, ordering: .relaxed)
    return server
  }

  private func disturb(
    _ servers: Servers, _ places: [Place], _ random: inout SeededGenerator
  ) async throws {
    let number = random.below(places.count)
    let place = places[number]
    switch random.below(8) {
    case 0:
      cluster.postgres.kill()
      try await Task.sleep(for: .milliseconds(20 + random.below(300)))
      try cluster.postgres.start()
    case 1:
      cluster.postgres.freeze(true)
      try await Task.sleep(for: .milliseconds(200 + random.below(2000)))
      cluster.postgres.freeze(false)
    case 2, 3:
      servers.processes[number].kill()
      if random.oneIn(3) { try cluster.removeDirectory("\(number)") }
      try await Task.sleep(for: .milliseconds(random.below(2000)))
      servers.processes[number] = try start(number, place)
    case 4:
      #expect(servers.processes[number].stop() == 0)
      servers.processes[number] = try start(number, place)
    case 5:
      servers.processes[number].freeze(true)
      try await Task.sleep(for: .milliseconds(200 + random.below(5000)))
      servers.processes[number].freeze(false)
    case 6: for _ in 0..<5 { place.proxy.cut() }
    default:
      place.proxy.set([.held, .deaf, .closed][random.below(3)])
      try await Task.sleep(for: .milliseconds(100 + random.below(5000)))
      place.proxy.set(.open)
      place.proxy.cut()
    }
  }

  @Test(
    "one order of all writes explains what clients of all servers were told",
    arguments: 0..<UInt64(max(3, Scale.scaled(500))))
  func histories(seed: UInt64) async throws {
    var random = SeededGenerator(seed: seed)
    let history = ClientHistory()
    let places = try (0..<3).map { _ in Place(try PostgresProxy(to: cluster.postgres.port)) }
    let servers = Servers()
    for (number, place) in places.enumerated() {
      servers.processes.append(try start(number, place))
    }
    let isEnded = Flag()
    let clients = DispatchGroup()
    for number in 0..<8 {
      let kind = HistoryClient.Kind.allCases[number % 3]
      let client = HistoryClient(
        kind, number, places, history, seed &* 31 &+ UInt64(number), isEnded: { isEnded.isSet })
      clients.enter()
      Thread.detachNewThread {
        client.run()
        clients.leave()
      }
    }
    for _ in 0..<3 {
      let before = history.acknowledgedCount
      try await disturb(servers, places, &random)
      try await eventually("writes are acknowledged again, seed \(seed)") {
        history.acknowledgedCount >= before + 20
      }
    }
    isEnded.set()
    await withCheckedContinuation { continuation in
      clients.notify(queue: .global()) { continuation.resume() }
    }
    try await check(servers, history, seed)
    for server in servers.processes { #expect(server.stop() == 0, "seed \(seed)") }
  }

  /// The values that were written, with the numbers of their writes in the log that all servers have.
  private func order(_ database: Database, _ seed: UInt64) throws -> [Int: UInt64] {
    var order: [Int: UInt64] = [:]
    let engine = try #require(database.engine)
    let last = engine.head.lsn
    let reader = try engine.changes(since: .zero)
    while reader.position < last {
      for write in try reader.page(upTo: last) {
        guard case .update(_, let entries) = write.write else { continue }
        for entry in entries where "\(entry.path)".hasSuffix("register") {
          guard case .set(let node) = entry.action, case .integer(let value)? = node.scalar else {
            continue
          }
          #expect(order[Int(value)] == nil, "write \(value) is there twice, seed \(seed)")
          order[Int(value)] = write.lsn.rawValue
        }
      }
    }
    return order
  }

  private func check(_ servers: Servers, _ history: ClientHistory, _ seed: UInt64) async throws {
    func all(_ server: ServerProcess) throws -> String {
      try HTTPClient(port: server.port)("GET", "/.json?format=export").body
    }
    // What sessions have left is written some seconds after their servers are gone.
    let registered = history.sessions.filter { $0.hasRegistered == true }.map(\.name)
    try await eventually("all sessions have left what they registered, seed \(seed)") {
      let text = try HTTPClient(port: servers.processes[0].port)("GET", "/left.json").body
      let left = try JSONSerialization.jsonObject(with: Data(text.utf8), options: .fragmentsAllowed)
      let counts = left as? [String: Int] ?? [:]
      return registered.allSatisfy { counts[$0] != nil }
    }
    let database = try cluster.openFresh()
    let left = try await database.reference(withPath: "left").getData().value as? [String: Int]
    #expect((left ?? [:]).allSatisfy { $0.value == 1 }, "\(left ?? [:]), seed \(seed)")
    try await eventually("all servers have the same, seed \(seed)") {
      try Set(servers.processes.map(all)).count == 1
    }
    let order = try order(database, seed)
    #expect(
      try await database.reference(withPath: "h/count").getData().value as? Int == order.count,
      "seed \(seed)")
    try await database.close()

    for operation in history.operations {
      switch operation.outcome {
      case .acknowledged:
        #expect(order[operation.value] != nil, "\(operation.value) is lost, seed \(seed)")
      case .refused:
        #expect(order[operation.value] == nil, "\(operation.value) was refused, seed \(seed)")
      case .undecided: break
      }
    }
    // What had ended before another one began comes before it.
    var highest: UInt64 = 0
    let ended = history.operations.filter { $0.outcome == .acknowledged }
      .sorted { $0.ended < $1.ended }
    var next = 0
    for operation in history.operations.sorted(by: { $0.begun < $1.begun }) {
      while next < ended.count, ended[next].ended < operation.begun {
        highest = max(highest, order[ended[next].value] ?? 0)
        next += 1
      }
      if let lsn = order[operation.value] {
        #expect(lsn > highest, "\(operation.value), seed \(seed)")
      }
    }
    // No session sees time go back, nor what does not stand; each sees its own writes.
    for session in history.sessions {
      let lsns = session.values.map { order[$0] }
      #expect(!lsns.contains(nil), "\(session.name) saw what does not stand, seed \(seed)")
      let known = lsns.compactMap(\.self)
      #expect(known == known.sorted(), "\(session.name), seed \(seed)")
    }
  }
}
