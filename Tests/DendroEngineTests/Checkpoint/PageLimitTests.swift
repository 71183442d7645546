import DendroStorage
import DendroTestSupport
import DendroTesting
import DendroTree
import Testing

@testable import DendroEngine

/// Trees at the limits of keys and values: their checkpoints can be read.
@Suite("Checkpoints of long keys and values")
struct PageLimitTests {
  private static func open(_ disk: SimulatedDisk) throws -> Engine {
    var options = EngineOptions.inline
    options.loading = .whole
    return try Engine.open(at: "/db", options: options, environment: disk.environment)
  }

  /// Takes a checkpoint, opens it, and compares.
  private static func check(_ engine: Engine, _ disk: SimulatedDisk) throws {
    engine.pump()
    let root = engine.head.root
    try root.checkInvariants()
    try engine.checkpoint()
    try engine.close()
    let again = try open(disk)
    #expect(again.report.unreadableCheckpoints.isEmpty)
    #expect(again.head.root == root)
    try again.head.root.checkInvariants()
    try again.close()
  }

  enum Order: CaseIterable { case ascending, descending, random, pairs }

  @Test(
    "keys that begin alike",
    arguments: stride(from: 20, through: 740, by: 90 * Scale.stride(4)).flatMap { prefix in
      Order.allCases.map { (prefix, $0) }
    })
  func longKeys(prefix: Int, order: Order) throws {
    let disk = SimulatedDisk(seed: 1)
    let engine = try Self.open(disk)
    let common = String(repeating: "p", count: prefix)
    let count = 2_000
    var random = SeededRandomness(seed: UInt64(prefix))
    let indices: [Int] =
      switch order {
      case .ascending: Array(0..<count)
      case .descending: (0..<count).reversed()
      case .random: (0..<count).shuffled(using: &random)
      // Each is the last of its page for a moment.
      case .pairs: stride(from: count - 2, through: 0, by: -2).flatMap { [$0, $0 + 1] }
      }
    for index in indices {
      let key = common + "k" + String(10_000 + index)
      engine.submit(try set("objects/\(key)/x", .integer(1)), completion: nil)
      engine.submit(try set("leaves/\(key)", .integer(1)), completion: nil)
    }
    try Self.check(engine, disk)
  }

  @Test("a string and a priority, each as long as a string may be")
  func longPriority() throws {
    let disk = SimulatedDisk(seed: 1)
    let engine = try Self.open(disk)
    let text = String(repeating: "x", count: Limits.stringBytes)
    let node = Node(.string(text)).settingPriority(.string(text))
    engine.submit(Draft(.set(try path("long"), node)), completion: nil)
    engine.submit(try set("n", .integer(1)), completion: nil)
    try Self.check(engine, disk)
  }

  @Test("random keys of up to 768 bytes come and go", arguments: Scale.seeds(4))
  func random(seed: UInt64) throws {
    let disk = SimulatedDisk(seed: seed)
    let engine = try Self.open(disk)
    var random = SeededRandomness(seed: seed)
    var keys: [String] = []
    for step in 0..<4_000 {
      if step % 1_000 < 600 || keys.isEmpty {
        let key =
          String(repeating: "q", count: Int.random(in: 0...740, using: &random))
          + String(Int.random(in: 0..<100_000, using: &random))
        keys.append(key)
        engine.submit(
          try set(Bool.random(using: &random) ? key : key + "/x", .integer(1)), completion: nil)
      } else {
        let key = keys.remove(at: Int.random(in: 0..<keys.count, using: &random))
        engine.submit(Draft(.remove(try path(key))), completion: nil)
      }
    }
    try Self.check(engine, disk)
  }
}
