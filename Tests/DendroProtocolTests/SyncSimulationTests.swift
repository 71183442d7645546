import DendroTestSupport
import DendroTree
import Testing

@testable import DendroProtocol

/// Clients and a server with lines between them that are cut at any moment.
@Suite("keeping in step with a server: lines that are cut")
struct SyncSimulationTests {
  @Test(
    "in the end each client knows what the server has where it listens, and no write is pending",
    arguments: Scale.seeds(100))
  func convergence(seed: UInt64) throws {
    var simulation = Simulation(seed: seed)
    for _ in 0..<600 { try simulation.step() }
    try simulation.settle()
    for _ in 0..<5 {
      try simulation.leave()
      try simulation.settle()
    }
    // Each transaction that was taken has counted once. Of one whose line was cut it is not known.
    let counted = simulation.clients.reduce(0) { $0 + $1.countedCount }
    let unknown = simulation.clients.reduce(0) { $0 + $1.unknownCount }
    let count = Simulation.count(simulation.server.tree.node(at: try Path(parsing: "count")))
    if simulation.isCounting {
      #expect((counted...counted + unknown).contains(count), "seed \(seed)")
    }
    // The first servers have told what had changed.
    #expect(seed > 2 || simulation.server.resumedCount > 0)
    for client in simulation.clients {
      #expect(client.running.isEmpty && client.transactions.isEmpty, "seed \(seed)")
      #expect(client.dialogue.tree.pending.isEmpty, "seed \(seed)")
      #expect(client.unanswered.isEmpty, "seed \(seed)")
      for target in client.targets {
        let known = try #require(client.dialogue.tree.visible(target))
        let shown = simulation.server.tree.node(at: target.path).filtered(by: target.parameters)
        #expect(known.isComplete, "seed \(seed)")
        #expect(known.node.filtered(by: target.parameters) == shown, "seed \(seed), \(target)")
        // The steps lead there.
        #expect(client.seen[target]?.isIdentical(to: known.node) == true, "seed \(seed)")
      }
    }
  }
}

private struct Simulation {
  struct Client {
    var dialogue: SyncDialogue
    var targets: [SyncedTree.Target] = []
    /// What the steps of each target have led to.
    var seen: [SyncedTree.Target: Node] = [:]
    var unanswered: Set<Int> = []
    /// The transactions that have not ended, and whether they count.
    var transactions: [Int: Bool] = [:]
    var paths: [Int: Path] = [:]
    /// The runs of blocks that were asked for.
    var running: [(transaction: Int, input: Node)] = []
    var countedCount = 0
    var unknownCount = 0
    var isConnected = false
    /// Whether it gives up the connection.
    var leaves = false
    var toServer: [[UInt8]] = []
    var toClient: [[UInt8]] = []
  }

  var generator: SeededGenerator
  var server: SyncModelServer
  var clients: [Client]

  /// Whether only transactions write to the location of the count, and nothing is written to the root.
  let isCounting: Bool

  static func count(_ node: Node) -> Int {
    if case .integer(let count)? = node.scalar { Int(count) } else { 0 }
  }

  init(seed: UInt64) {
    generator = SeededGenerator(seed: seed)
    isCounting = seed.isMultiple(of: 2)
    server = SyncModelServer(
      (try? json("{\"a\":{\"a\":1,\"b\":2},\"b\":{\"c\":\"x\"}}")) ?? .empty,
      resumes: !seed.isMultiple(of: 3))
    // Some send one write after the other.
    let counts = [1, 2, 8192]
    clients = (0..<3).map { index in
      let countMax = counts[(index + Int(seed)) % counts.count]
      return Client(dialogue: SyncDialogue(software: "test", writesOnTheirWay: countMax))
    }
  }

  /// Something happens.
  mutating func step() throws {
    let index = generator.below(clients.count)
    switch generator.below(20) {
    case 0: if !clients[index].isConnected { connect(index) }
    case 1: if clients[index].isConnected, generator.oneIn(3) { cut(index) }
    case 2, 3: try listen(index)
    case 4: unlisten(index)
    case 5...7: try write(index)
    case 8: try transact(index)
    case 9: deliver(server.write(try other(), &generator))
    case 10 where generator.oneIn(4): take(clients[index].dialogue.askLSN(), index)
    default: try pass(index)
    }
  }

  /// Connects all, and delivers everything.
  mutating func settle() throws {
    while let index = clients.indices.first(where: {
      !clients[$0].isConnected || !clients[$0].toServer.isEmpty || !clients[$0].toClient.isEmpty
        || !clients[$0].running.isEmpty
    }) {
      if clients[index].isConnected { try pass(index) } else { connect(index) }
    }
  }

  /// Loses all connections, and has others write a little.
  mutating func leave() throws {
    for index in clients.indices where clients[index].isConnected { cut(index) }
    for _ in 0..<3 { deliver(server.write(try other(), &generator)) }
  }

  // MARK: Lines

  private mutating func connect(_ index: Int) {
    clients[index].isConnected = true
    clients[index].dialogue.opened()
    deliver(server.open(index))
  }

  /// What is under way is lost.
  private mutating func cut(_ index: Int) {
    clients[index].isConnected = false
    clients[index].toServer = []
    clients[index].toClient = []
    server.close(index)
    take(clients[index].dialogue.lost(), index)
  }

  /// One message arrives, or a block runs.
  private mutating func pass(_ index: Int) throws {
    if !clients[index].running.isEmpty, generator.oneIn(2) { return try runBlock(index) }
    let up = !clients[index].toServer.isEmpty
    let down = !clients[index].toClient.isEmpty
    if up, !down || generator.oneIn(2) {
      let message = clients[index].toServer.removeFirst()
      deliver(try server.receive(message, from: index, &generator))
    } else if down {
      let message = clients[index].toClient.removeFirst()
      take(clients[index].dialogue.receive(message), index)
      if clients[index].leaves {
        clients[index].leaves = false
        cut(index)
      }
    }
  }

  private mutating func deliver(_ sent: SyncModelServer.Sent) {
    for (client, message) in sent { clients[client].toClient.append(message) }
  }

  private mutating func take(_ effects: [SyncDialogue.Effect], _ index: Int) {
    for effect in effects {
      switch effect {
      case .send(let message): clients[index].toServer.append(message)
      case .changed(let step):
        // Transactions listen, too.
        guard clients[index].targets.contains(step.target) else { continue }
        // Each step goes on where the one before has ended.
        #expect(clients[index].seen[step.target]?.isIdentical(to: step.before.node) == true)
        clients[index].seen[step.target] = step.after.node
      case .ended(let target, let refusal):
        #expect(refusal.status == "permission_denied")
        clients[index].targets.removeAll { $0 == target }
        clients[index].seen[target] = nil
      case .answered(let write, _): #expect(clients[index].unanswered.remove(write) != nil)
      case .run(let transaction, let input): clients[index].running.append((transaction, input))
      case .transacted(let transaction, let end):
        let counts = clients[index].transactions.removeValue(forKey: transaction)
        switch end {
        case .committed: if counts == true { clients[index].countedCount += 1 }
        case .refused(.disconnected): if counts == true { clients[index].unknownCount += 1 }
        case .aborted, .refused: #expect(counts != nil)
        }
      case .fail(let reason):
        if !reason.hasPrefix("what has changed") { Issue.record("\(reason)") }
        clients[index].leaves = true
      default: break
      }
    }
  }

  // MARK: Clients

  private mutating func listen(_ index: Int) throws {
    guard clients[index].targets.count < 6 else { return }
    var parameters = QueryParameters()
    switch generator.below(8) {
    case 0: parameters.limit = .last(2)
    case 1:
      parameters.order = .value
      parameters.limit = .first(2)
    case 2:
      parameters.order = .key
      parameters.start = .init(value: .none, key: try Key("b"), isExclusive: false)
    case 3: parameters.order = .child(try path("a"))
    default: break
    }
    let target = SyncedTree.Target(try place(2, isWriting: false), parameters)
    if clients[index].targets.contains(target) { return }
    clients[index].targets.append(target)
    let effects = clients[index].dialogue.begin(target, for: .listener(1))
    clients[index].seen[target] = clients[index].dialogue.tree.visible(target)?.node
    take(effects, index)
  }

  private mutating func unlisten(_ index: Int) {
    guard !clients[index].targets.isEmpty else { return }
    let target = clients[index].targets.remove(at: generator.below(clients[index].targets.count))
    clients[index].seen[target] = nil
    take(clients[index].dialogue.end(target, for: .listener(1)), index)
  }

  private mutating func write(_ index: Int) throws {
    let path = try place(3)
    let text = text()
    let node = try json(text)
    let write = SyncWrite(
      Draft(node.isEmpty ? .remove(path) : .set(path, node)), time: 0,
      over: clients[index].dialogue.tree)
    let (number, effects) = clients[index].dialogue.write(write)
    clients[index].unanswered.insert(number)
    take(effects, index)
  }

  private mutating func transact(_ index: Int) throws {
    let counts = generator.oneIn(2)
    let path = counts ? try Path(parsing: "count") : try place(3)
    let (number, effects) = clients[index].dialogue.transact(
      at: path, isVisible: generator.oneIn(2))
    clients[index].transactions[number] = counts
    clients[index].paths[number] = path
    take(effects, index)
  }

  private mutating func runBlock(_ index: Int) throws {
    let (transaction, input) = clients[index].running.removeFirst()
    var decision = SyncDialogue.Decision.abort
    if let counts = clients[index].transactions[transaction] {
      let path = clients[index].paths[transaction] ?? .root
      if counts {
        let sum = Node(.integer(Int64(Self.count(input) + 1)))
        decision = .write(Draft(.set(path, sum)), time: 0)
      } else if generator.oneIn(3) {
        var node = input
        node.graft(Node(.integer(7)), at: try Path(parsing: "t"))
        decision = .write(Draft(.set(path, node)), time: 0)
      } else if generator.oneIn(2) {
        decision = .write(Draft(.remove(path)), time: 0)
      }
    }
    take(clients[index].dialogue.decided(transaction, decision), index)
  }

  /// A write that none of the clients makes.
  private mutating func other() throws -> Write { .set(try place(3), try json(text())) }

  private mutating func place(_ depth: Int, isWriting: Bool = true) throws -> Path {
    var path = Path.root
    for _ in 0..<max(isWriting && isCounting ? 1 : 0, generator.below(depth + 1)) {
      path = path.appending(try Key(["a", "b", "c", "d", "no"][generator.below(9) / 2]))
    }
    return path
  }

  private mutating func text() -> String {
    let texts = [
      "null", "1", "\"x\"", "{\"a\":1}", "{\"a\":{\"b\":2},\"c\":3}",
      "{\"d\":{\".value\":4,\".priority\":5}}",
      "{\"b\":true,\"a\":7}",
    ]
    return texts[generator.below(texts.count)]
  }
}
