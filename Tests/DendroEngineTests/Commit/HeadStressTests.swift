import DendroTestSupport
import DendroTesting
import DendroTree
import Foundation
import Synchronization
import Testing

@testable import DendroEngine

/// Readers of every kind beside writers of every kind, on threads of their own. A seed decides what each of them does;
/// how they meet the machine decides.
@Suite("Readers beside writers at full speed")
struct HeadStressTests {
  /// What all threads of a run share.
  private final class Run: Sendable {
    let engine = Engine(inMemory: .inline, environment: SimulatedDisk(seed: 1).environment)
    let seed: UInt64
    /// The last value of the pair of which the write has returned.
    let written = Atomic<Int>(0)
    let isWriting = Atomic<Bool>(true)
    let wrong = Received<String>()

    init(seed: UInt64) { self.seed = seed }

    func check(_ isRight: Bool, _ what: @autoclosure () -> String) {
      if !isRight { wrong.add("seed \(seed): \(what())") }
    }
  }

  /// Leaves of one length in a list that is long enough for several levels of pages.
  private static let leafCount = 600
  private static func leaf(_ index: Int) -> String { "list/item-\(1_000 + index)/text" }
  private static func text(_ number: Int) -> String { "text-\(10_000 + number % 80_000)" }
  private static let textByteCount = 10

  // MARK: Writers

  /// Sets both halves of a pair in one write, again and again.
  private static func writePairs(_ run: Run) throws {
    let halves = [try path("pair/a"), try path("pair/b")]
    for value in 1...Int64(Scale.scaled(100_000)) {
      let entries = halves.map { Write.Entry(path: $0, action: .set(Node(.integer(value)))) }
      run.engine.submit(Draft(.update(.root, entries)), completion: nil)
      run.written.store(Int(value), ordering: .releasing)
    }
    run.isWriting.store(false, ordering: .relaxed)
  }

  /// Changes leaves at random, in place and not, and lets pages split and merge.
  private static func writeLeaves(_ run: Run) throws {
    var generator = SeededRandomness(seed: run.seed)
    var number = 0
    while run.isWriting.load(ordering: .relaxed) {
      number += 1
      let index = Int.random(in: 0..<leafCount, using: &generator)
      switch UInt8.random(in: 0..<8, using: &generator) {
      case 0:
        let place = "extra/key-\(index)"
        run.engine.submit(try set(place, .string(text(number))), completion: nil)
      case 1:
        run.engine.submit(Draft(.remove(try path("extra/key-\(index)"))), completion: nil)
      case 2:
        let new = Node(.string(String(repeating: "x", count: index)))
        run.engine.submit(Draft(.set(try path("extra"), new)), completion: nil)
      default:
        run.engine.submit(try set(leaf(index), .string(text(number))), completion: nil)
      }
    }
  }

  // MARK: Readers

  private static func read(_ run: Run, reader: UInt64) throws {
    var generator = SeededRandomness(seed: run.seed &* 31 &+ reader)
    var newest = 0
    var kept: [(node: Node, value: Int)] = []
    repeat {
      let least = run.written.load(ordering: .acquiring)
      let value: Int
      switch UInt8.random(in: 0..<4, using: &generator) {
      case 0: value = try readPair(run) {}
      case 1:
        let indices = (0..<16).map { _ in Int.random(in: 0..<leafCount, using: &generator) }
        value = try readPair(run) {
          for index in indices {
            let found = try run.engine.reading { view, _ in
              try view.view(parsing: leaf(index)).scalar
            }
            run.check(text(in: found)?.utf8.count == textByteCount, "a leaf is whole")
          }
        }
      case 2:
        let node = try run.engine.node(at: try path("pair")).node
        value = pair(of: node, run)
        kept.append((node, value))
      default:
        // It writes where it reads: the tree is kept for it until it ends.
        value = try readPair(run) {
          run.engine.submit(
            try set(leaf(0), .string(text(newest))), completion: nil)
        }
      }
      run.check(value >= least, "a write shows once it has returned: \(value), not \(least)")
      run.check(value >= newest, "what was seen is not seen older: \(value) after \(newest)")
      newest = value
      if kept.count == 20 {
        for (node, value) in kept {
          run.check(pair(of: node, run) == value, "a node that was kept")
        }
        kept.removeAll()
      }
    } while run.isWriting.load(ordering: .relaxed)
  }

  /// Reads the pair in one view, the other half after `body`.
  private static func readPair(_ run: Run, _ body: () throws -> Void) throws -> Int {
    try run.engine.reading { view, _ in
      let a = number(in: try view.view(parsing: "pair/a").scalar)
      try body()
      let b = number(in: try view.view(parsing: "pair/b").scalar)
      run.check(a != nil && a == b, "both halves are of one write: \(a ?? -1), \(b ?? -1)")
      return a ?? -1
    }
  }

  private static func pair(of node: Node, _ run: Run) -> Int {
    let a = number(in: (try? node.node(parsing: "a"))?.scalar)
    let b = number(in: (try? node.node(parsing: "b"))?.scalar)
    run.check(a != nil && a == b, "a node has both halves of one write")
    return a ?? -1
  }

  private static func number(in scalar: Scalar?) -> Int? {
    if case .integer(let value)? = scalar { Int(value) } else { nil }
  }

  private static func text(in scalar: Scalar?) -> String? {
    if case .string(let text)? = scalar { text } else { nil }
  }

  @Test("what is read is whole and never older, and nothing stays behind", arguments: 1...4)
  func stress(seed: UInt64) async throws {
    let run = Run(seed: seed)
    let first = ["pair/a", "pair/b"].map { ($0, Scalar.integer(0)) }
    let leaves = (0..<Self.leafCount).map { (Self.leaf($0), Scalar.string(Self.text($0))) }
    for (place, value) in first + leaves {
      run.engine.submit(try set(place, value), completion: nil)
    }
    let bodies: [@Sendable () throws -> Void] =
      [{ try Self.writePairs(run) }, { try Self.writeLeaves(run) }]
      + (0..<3).map { reader in { try Self.read(run, reader: reader) } }
    await withTaskGroup { group in
      for body in bodies {
        group.addTask {
          await onThread {
            do { try body() } catch { run.check(false, "\(error)") }
          }
        }
      }
    }
    #expect(run.wrong.all == [])
    let readers = run.engine.pipeline.readers
    let retiredCount = readers.retired.withLock(\.count)
    #expect(retiredCount == 0 && !readers.hasRetired)
    try run.engine.wholeHead().root.checkInvariants()
    try await run.engine.close()
  }
}
