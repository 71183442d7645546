import DendroStorage
import DendroTestSupport
import DendroTesting
import DendroTree
import Foundation
import Testing

@testable import DendroEngine

/// A page that cannot be read fails the reading that needs it, and no other one.
@Suite("Readings that fail")
struct ReadingFailuresTests {
  /// An engine with a damaged chunk in its checkpoint, an object that can be read, and one that cannot.
  private static func openDamaged() throws -> (engine: Engine, good: Path, bad: Path) {
    let disk = SimulatedDisk(seed: 1)
    _ = try LoadingTests.database(disk)
    let directory = try DatabaseDirectory.open(
      "/db", environment: disk.environment, mode: .readOnly)
    let newest = try #require(try directory.contents().checkpoints.max())
    let checkpoint = try CheckpointReader.open(directory, lsn: newest)
    directory.close()
    let offset = checkpoint.offset(ofChunk: checkpoint.chunkCount / 2)
    disk.flipBit(Int(offset + 40) * 8, of: checkpoint.path)
    let trial = try LoadingTests.open(disk)
    var (good, bad): ([Path], [Path]) = ([], [])
    for object in 0..<30 {
      let place = try path("o\(object)")
      if (try? trial.view(at: place)) == nil { bad.append(place) } else { good.append(place) }
    }
    try trial.close()
    return (try LoadingTests.open(disk), try #require(good.first), try #require(bad.first))
  }

  /// Reads an object without a call that throws by itself.
  private static func read(_ engine: Engine, _ place: Path) throws -> ModelTree {
    try engine.node(at: .root).reading { root, _ in ModelTree(root.node(at: place)) }
  }

  private static func isRefused(_ engine: Engine, _ place: Path) -> Bool {
    (try? read(engine, place)) == nil
  }

  @Test("on one thread, no reading of another thread fails meanwhile")
  func threads() throws {
    let (engine, good, bad) = try Self.openDamaged()
    let found = try engine.node(at: .root).reading { root, check in
      let isRefused = Received<Bool>()
      let end = DispatchSemaphore(value: 0)
      Thread.detachNewThread {
        isRefused.add(Self.isRefused(engine, bad))
        end.signal()
      }
      end.wait()
      #expect(isRefused.all == [true])
      #expect(check.failure == nil)
      return ModelTree(root.node(at: good))
    }
    let again = try Self.read(engine, good)
    #expect(found == again)
    #expect(Self.isRefused(engine, bad))
    try engine.close()
  }

  @Test("within another reading, it fails alone; the other one fails for what it has read itself")
  func nested() throws {
    let (engine, good, bad) = try Self.openDamaged()
    let found = try engine.node(at: .root).reading { root, check in
      #expect(Self.isRefused(engine, bad))
      #expect(check.failure == nil)
      return ModelTree(root.node(at: good))
    }
    let alone = try Self.read(engine, good)
    #expect(found == alone)
    let refused = Result {
      try engine.node(at: .root).reading { root, check in
        _ = ModelTree(root.node(at: bad))
        #expect(check.failure != nil)
        #expect(Self.isRefused(engine, bad))
        #expect(check.failure != nil)
        let again = try Self.read(engine, good)
        #expect(again == found)
      }
    }
    #expect(throws: EngineError.self) { try refused.get() }
    try engine.close()
  }
}
