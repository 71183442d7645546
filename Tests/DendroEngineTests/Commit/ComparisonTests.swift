import DendroStorage
import DendroTesting
import DendroTestSupport
import DendroTree
import Testing

@testable import DendroEngine

/// A large tree is compared with the one that it replaces without the admission lock.
@Suite("Setting large trees")
struct ComparisonTests {
  private static func tree(_ count: Int, last: Int64 = 0) throws -> Node {
    var builder = NodeBuilder()
    for number in 0..<count {
      let isLast = number == count - 1
      builder.append(
        try Key("key\(1_000_000 + number)"), Node(.integer(isLast ? last : Int64(number))))
    }
    return builder.finish(priority: nil)
  }

  private static func open() throws -> Engine {
    try Engine.open(
      at: "/db", options: .inline, environment: SimulatedDisk(seed: 1).environment)
  }

  /// What the pipeline's admission says to one offer of the draft.
  private static func offer(
    _ draft: Draft, to engine: Engine, _ waits: inout PermittedWaits
  ) -> AdmissionOutcome {
    let write = EncodedWrite(draft)
    write.prepare(isLogged: true)
    return engine.pipeline.withAdmission { admission in
      write.withView { admission.offer($0, now: 1, nil, &waits) }
    }
  }

  @Test("an equal tree changes nothing, a different one is set, each compared once")
  func compared() throws {
    let engine = try Self.open()
    let place = try path("a")
    engine.submit(Draft(.set(place, try Self.tree(5_000))), completion: nil)
    for (last, lsn) in [(Int64(0), UInt64(1)), (7, 2)] {
      let draft = Draft(.set(place, try Self.tree(5_000, last: last)))
      var waits = PermittedWaits()
      guard case .needsComparison(let existing) = Self.offer(draft, to: engine, &waits) else {
        Issue.record("the tree was compared under the lock")
        continue
      }
      #expect(existing.isIdentical(to: try engine.view(at: place)))
      waits.comparison = EncodedWrite(draft).withView { .init($0, with: existing) }
      #expect(waits.comparison?.isEqual == (last == 0))
      guard case .settled = Self.offer(draft, to: engine, &waits) else {
        Issue.record("not admitted")
        continue
      }
      #expect(engine.head.lsn == LogSequenceNumber(lsn))
      #expect(try engine.view(at: place) == (try Self.tree(5_000, last: last)))
    }
    engine.pump()
    try engine.close()
  }

  @Test("a comparison that another write overtakes is made again, four times at most")
  func overtaken() throws {
    let engine = try Self.open()
    let place = try path("a")
    engine.submit(Draft(.set(place, try Self.tree(5_000))), completion: nil)
    let draft = Draft(.set(place, try Self.tree(5_000)))
    var waits = PermittedWaits()
    for number in 1...4 {
      guard case .needsComparison(let existing) = Self.offer(draft, to: engine, &waits) else {
        Issue.record("comparison \(number) was not asked for")
        return
      }
      waits.comparison = EncodedWrite(draft).withView { .init($0, with: existing) }
      engine.submit(try set("a/key1000007", .integer(Int64(number) * 100)), completion: nil)
    }
    guard case .settled = Self.offer(draft, to: engine, &waits) else {
      Issue.record("the fifth offer was not admitted")
      return
    }
    // It had changed four times since it was equal: the set is the sixth write.
    #expect(engine.head.lsn == LogSequenceNumber(6))
    #expect(try engine.view(at: place) == (try Self.tree(5_000)))
    engine.pump()
    try engine.close()
  }

  @Test("what a glance decides is not compared: another number of children, a leaf, nothing there")
  func glance() throws {
    let engine = try Self.open()
    for existing in [nil, Node(.integer(1)), try Self.tree(4_999)] {
      if let existing { engine.submit(Draft(.set(try path("a"), existing)), completion: nil) }
      var waits = PermittedWaits()
      let draft = Draft(.set(try path("a"), try Self.tree(5_000)))
      guard case .settled = Self.offer(draft, to: engine, &waits) else {
        Issue.record("not admitted at once")
        continue
      }
      #expect(try engine.view(at: path("a")).childCount == 5_000)
    }
    engine.pump()
    try engine.close()
  }

  @Test("trees set by some threads while others change a leaf: the log gives the same tree")
  func besideWriters() async throws {
    let disk = SimulatedDisk(seed: 3)
    var options = EngineOptions.inline
    options.execution = .thread
    let engine = try Engine.open(at: "/db", options: options, environment: disk.environment)
    let draft = Draft(.set(try path("a"), try Self.tree(3_000)))
    let leaf = try path("a/key1000099")
    await withTaskGroup { group in
      for number in 0..<4 {
        group.addTask {
          await onThread {
            for round in 0..<50 {
              if number < 2 {
                engine.submit(draft, completion: nil)
              } else {
                let value = Scalar.integer(Int64(round * 4 + number))
                engine.submit(Draft(.set(leaf, Node(value))), completion: nil)
              }
            }
          }
        }
      }
    }
    try await engine.write(draft)
    let root = engine.head.root
    #expect(root.node(at: try path("a")) == (try Self.tree(3_000)))
    try await engine.close()
    let again = try Engine.open(at: "/db", options: .inline, environment: disk.environment)
    #expect(again.head.root == root)
    try await again.close()
  }
}
