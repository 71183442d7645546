import DendroEngine
import DendroStorage
import DendroTesting
import DendroTree
import Dispatch
import Foundation
import DendroTestSupport
import Testing

/// What a transaction leaves in the log.
@Suite("Transactions in the log")
struct TransactionLogTests {
  let disk = SimulatedDisk(seed: 1)

  private func open() throws -> Engine {
    var options = EngineOptions.inline
    options.history = .all
    return try Engine.open(at: "/db", options: options, environment: disk.environment)
  }

  /// Makes of what is at `place` what `body` makes of it.
  private func change(
    _ engine: Engine, _ place: String, deferred: [Draft.Deferred] = [],
    _ body: (inout Node) throws -> Void
  ) throws {
    let place = try path(place)
    var failure: (any Error)?
    engine.transact(at: place, refused: { Issue.record("\($0)") }) { input in
      var node = input
      do { try body(&node) } catch { failure = error }
      return TransactionDecision(Draft(.set(place, node), deferred: deferred)) { [node] result in
        #expect((try? result.get()).map { !deferred.isEmpty || $0 == node } == true)
      }
    }
    engine.pump()
    if let failure { throw failure }
  }

  private func writes(_ engine: Engine, since lsn: LogSequenceNumber) throws -> [Write] {
    try engine.synchronize()
    let reader = try engine.changes(since: lsn)
    return try reader.page(upTo: engine.head.lsn).map(\.write)
  }

  private func fill(_ engine: Engine, _ count: Int) throws {
    var builder = NodeBuilder()
    for number in 0..<count {
      builder.append(try Key("leaf\(number)"), Node(.string("the text of number \(number)")))
    }
    engine.submit(Draft(.set(try path("wide"), builder.finish())), completion: nil)
    engine.pump()
  }

  @Test(
    "one leaf of ten thousand takes the bytes of one leaf",
    arguments: ["leaf", "nested", "timestamp", "rebuilt"])
  func oneLeaf(form: String) throws {
    var engine = try open()
    try fill(engine, 10_000)
    let before = engine.statistics()
    let isTimestamp = form == "timestamp"
    let leaf = try path(form == "nested" ? "some/new/place" : "leaf5000")
    try change(
      engine, "wide",
      deferred: isTimestamp ? [.init(path: leaf, value: .timestamp)] : []
    ) { node in
      if form == "rebuilt" {
        var builder = NodeBuilder()
        node.forEachChild { builder.append($0, $1) }
        node = builder.finish()
      }
      node.graft(Node(.integer(7)), at: leaf)
    }
    let after = engine.statistics()
    let raw = after.rawByteCount - before.rawByteCount
    let stored = after.logByteCount - before.logByteCount
    // The set of the whole takes 327770 bytes, 91374 of them after compression.
    #expect(raw <= 40, "\(raw) bytes")
    #expect(stored <= 128, "\(stored) bytes")
    #expect(after.lastLSN == before.lastLSN.next)
    let root = engine.head.root
    let changed = root.node(at: try path("wide").appending(leaf)).scalar
    #expect(isTimestamp ? changed?.number != nil : changed == .integer(7))
    #expect(root.child(try Key("wide")).childCount == (form == "nested" ? 10_001 : 10_000))
    let writes = try writes(engine, since: before.lastLSN)
    guard case .set(let place, let node) = writes.first, writes.count == 1 else {
      Issue.record("\(writes)")
      return
    }
    #expect(try place == path(form == "nested" ? "wide/some" : "wide/leaf5000"))
    #expect(form == "nested" || node.scalar == changed)
    try engine.close()
    engine = try open()
    #expect(engine.head.root == root)
    try engine.close()
  }

  @Test("several places are one update; if all of it changes, the set is shorter")
  func forms() throws {
    let engine = try open()
    let keys = try "abcdefghijklmnopqrstuvwxyz0123456789".map { try Key(String($0)) }
    try change(engine, "short") { node in
      for key in keys { node.graft(Node(.bool(true)), at: Path(keys: [key])) }
    }
    try change(engine, "short") { node in
      node.graft(.empty, at: Path(keys: [keys[3]]))
      node.graft(Node(.integer(5)), at: Path(keys: [keys[4]]))
      node = node.settingPriority(.integer(1))
    }
    try change(engine, "short") { node in
      for key in keys { node.graft(Node(.bool(false)), at: Path(keys: [key])) }
    }
    try change(engine, "short") { _ in }
    try change(engine, "short") { $0 = Node(.integer(1)) }
    let writes = try writes(engine, since: LogSequenceNumber(1))
    #expect(writes.count == 3)
    guard case .update(let base, let entries) = writes[0],
      case .set(let place, let node) = writes[1],
      case .set(_, let leaf) = writes[2]
    else {
      Issue.record("\(writes)")
      return
    }
    #expect(try base == path("short") && entries.count == 3)
    #expect(try place == path("short"))
    #expect(node.childCount == keys.count && node.priority == .integer(1))
    #expect(leaf == Node(.integer(1)))
    try engine.close()
  }

  @Test("what was written there and back again meanwhile leaves what was decided, types included")
  func backAgain() throws {
    let engine = try open()
    try fill(engine, 100)
    let number = try path("wide/number")
    engine.submit(Draft(.set(number, Node(.integer(1)))), completion: nil)
    engine.pump()
    let draft = Draft(.set(number, Node(.double(1))))
    try change(engine, "wide") { node in
      node.graft(Node(.bool(true)), at: try path("leaf5"))
      // As another thread would.
      let isWritten = DispatchSemaphore(value: 0)
      Thread.detachNewThread {
        engine.submit(Draft(.remove(number)), completion: nil)
        engine.submit(draft, completion: nil)
        isWritten.signal()
      }
      isWritten.wait()
    }
    guard case .integer(1)? = try engine.view(at: number).scalar else {
      Issue.record("\(try engine.view(at: number))")
      return
    }
    try engine.close()
  }

  @Test("random transactions: the oracle's trees, after each, after reopening, from the log")
  func random() throws {
    for seed in 1...8 as ClosedRange<UInt64> {
      let disk = SimulatedDisk(seed: seed)
      var options = EngineOptions.inline
      options.history = .all
      var engine = try Engine.open(at: "/db", options: options, environment: disk.environment)
      var generator = WriteGenerator(seed: seed)
      generator.wideKeyCount = 30
      generator.stringByteCountMax = 4
      var model = ModelTree()
      for step in 0..<150 {
        if generator.random.oneIn(3) {
          let write = generator.write()
          if case .setPriority(let path, _) = write, try engine.view(at: path).isEmpty { continue }
          engine.submit(Draft(write), completion: nil)
          model.apply(write)
        } else {
          let place = generator.path(maxCount: 2)
          let writes = (0..<generator.random.below(4)).map { _ in generator.write() }
          engine.transact(at: place, refused: { Issue.record("\($0), seed \(seed)") }) { input in
            var node = input
            for write in writes { _ = node.apply(write) }
            let decision = node.isEmpty ? Write.remove(place) : .set(place, node)
            guard (try? decision.validate()) != nil else {
              return TransactionDecision(nil) { _ in }
            }
            model.apply(decision)
            return TransactionDecision(Draft(decision)) { _ in }
          }
        }
        engine.pump()
        #expect(ModelTree(engine.head.root) == model, "seed \(seed), step \(step)")
      }
      var replayed = Node.empty
      let reader = try engine.changes(since: .zero)
      while reader.position < engine.head.lsn {
        for write in try reader.page(upTo: engine.head.lsn) { _ = replayed.apply(write.write) }
      }
      #expect(ModelTree(replayed).description == model.description, "seed \(seed)")
      try engine.close()
      engine = try Engine.open(at: "/db", options: options, environment: disk.environment)
      #expect(ModelTree(engine.head.root).description == model.description, "seed \(seed)")
      try engine.close()
    }
  }
}
