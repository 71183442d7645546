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
    for client in simulation.clients {
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
    var dialogue = SyncDialogue(software: "test")
    var targets: [SyncedTree.Target] = []
    /// What the steps of each target have led to.
    var seen: [SyncedTree.Target: Node] = [:]
    var unanswered: Set<Int> = []
    var lastWrite = 0
    var isConnected = false
    var toServer: [[UInt8]] = []
    var toClient: [[UInt8]] = []
  }

  var generator: SeededGenerator
  var server: SyncModelServer
  var clients: [Client]

  init(seed: UInt64) {
    generator = SeededGenerator(seed: seed)
    server = SyncModelServer((try? json("{\"a\":{\"a\":1,\"b\":2},\"b\":{\"c\":\"x\"}}")) ?? .empty)
    clients = (0..<3).map { _ in Client() }
  }

  /// Something happens.
  mutating func step() throws {
    let index = generator.below(clients.count)
    switch generator.below(20) {
    case 0: if !clients[index].isConnected { connect(index) }
    case 1: if clients[index].isConnected, generator.oneIn(3) { cut(index) }
    case 2, 3: try listen(index)
    case 4: unlisten(index)
    case 5...8: try write(index)
    case 9: deliver(server.write(try other(), &generator))
    default: try pass(index)
    }
  }

  /// Connects all, and delivers everything.
  mutating func settle() throws {
    for index in clients.indices where !clients[index].isConnected { connect(index) }
    while let index = clients.indices.first(where: {
      !clients[$0].toServer.isEmpty || !clients[$0].toClient.isEmpty
    }) {
      try pass(index)
    }
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

  /// One message arrives.
  private mutating func pass(_ index: Int) throws {
    let up = !clients[index].toServer.isEmpty
    let down = !clients[index].toClient.isEmpty
    if up, !down || generator.oneIn(2) {
      let message = clients[index].toServer.removeFirst()
      deliver(try server.receive(message, from: index, &generator))
    } else if down {
      let message = clients[index].toClient.removeFirst()
      take(clients[index].dialogue.receive(message), index)
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
        // Each step goes on where the one before has ended.
        #expect(clients[index].seen[step.target]?.isIdentical(to: step.before.node) == true)
        clients[index].seen[step.target] = step.after.node
      case .ended(let target, let refusal):
        #expect(refusal.status == "permission_denied")
        clients[index].targets.removeAll { $0 == target }
        clients[index].seen[target] = nil
      case .answered(let write, _): #expect(clients[index].unanswered.remove(write) != nil)
      case .fail(let reason): Issue.record("\(reason)")
      default: break
      }
    }
  }

  // MARK: Clients

  private mutating func listen(_ index: Int) throws {
    guard clients[index].targets.count < 6 else { return }
    var parameters = QueryParameters()
    switch generator.below(5) {
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
    let target = SyncedTree.Target(try place(2), parameters)
    if clients[index].targets.contains(target) { return }
    clients[index].targets.append(target)
    let effects = clients[index].dialogue.begin(target)
    clients[index].seen[target] = clients[index].dialogue.tree.visible(target)?.node
    take(effects, index)
  }

  private mutating func unlisten(_ index: Int) {
    guard !clients[index].targets.isEmpty else { return }
    let target = clients[index].targets.remove(at: generator.below(clients[index].targets.count))
    clients[index].seen[target] = nil
    take(clients[index].dialogue.end(target), index)
  }

  private mutating func write(_ index: Int) throws {
    let path = try place(3)
    let text = text()
    let node = try json(text)
    let isConditional = generator.oneIn(8)
    let message = SyncDialogue.Message(
      isUpdate: false, at: DataPlace(path), data: Array(text.utf8),
      hash: isConditional ? TreeHash.hash(server.tree.node(at: path)) : nil)
    clients[index].lastWrite += 1
    clients[index].unanswered.insert(clients[index].lastWrite)
    take(
      clients[index].dialogue.write(
        PendingWrites.Write(setting: DataPlace(path), node), number: clients[index].lastWrite,
        message), index)
  }

  /// A write that none of the clients makes.
  private mutating func other() throws -> Write { .set(try place(3), try json(text())) }

  private mutating func place(_ depth: Int) throws -> Path {
    var path = Path.root
    for _ in 0..<generator.below(depth + 1) {
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
