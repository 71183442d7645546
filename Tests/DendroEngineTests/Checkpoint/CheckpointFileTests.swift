import DendroEngine
import DendroStorage
import DendroTestSupport
import DendroTree
import Foundation
import Testing

/// Which files of checkpoints a process has open, on the real disk.
@Suite("Files of checkpoints that are open")
struct CheckpointFileTests {
  /// The path of a directory that does not exist yet, in one that is removed with this object.
  private final class Place {
    let path: String

    init() throws {
      path = NSTemporaryDirectory() + "dendro-" + UUID().uuidString
      try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
    }

    deinit { try? FileManager.default.removeItem(atPath: path) }

    /// The open files that end so, as `/proc` names them: a removed one as deleted.
    func openFiles(_ suffixes: String...) -> [String] {
      let numbers = (try? FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd")) ?? []
      return numbers.compactMap {
        try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/fd/\($0)")
      }
      .filter { file in file.hasPrefix(path) && suffixes.contains { file.hasSuffix($0) } }
    }
  }

  private static let objectCount = 30

  private static func open(_ place: Place) throws -> Engine {
    try Engine.open(at: place.path + "/db", options: LoadingTests.options())
  }

  /// A closed database with a checkpoint of many chunks.
  private static func database(_ place: Place) throws -> Node {
    let engine = try open(place)
    for object in 0..<objectCount {
      for leaf in 0..<20 {
        engine.submit(
          try set("o\(object)/leaf\(leaf)", .string("\(object) \(leaf)")), completion: nil)
      }
    }
    engine.pump()
    try engine.checkpoint()
    let root = engine.head.root
    try engine.close()
    return root
  }

  @Test("once all pages are read the checkpoint is closed")
  func allRead() throws {
    let place = try Place()
    let root = try Self.database(place)
    let engine = try Self.open(place)
    for object in 0..<Self.objectCount {
      #expect(place.openFiles(".checkpoint").count == 1)
      let object = try path("o\(object)")
      #expect(try engine.view(at: object) == root.node(at: object))
    }
    #expect(place.openFiles(".checkpoint").isEmpty)
    #expect(try engine.wholeHead().root == root)
    try engine.close()
  }

  @Test("a state that is held can be read although the head has nothing unread")
  func heldState() throws {
    let place = try Place()
    let root = try Self.database(place)
    let engine = try Self.open(place)
    var held: HeadNode? = try engine.node(at: .root)
    engine.submit(Draft(.set(.root, Node(.bool(true)))), completion: nil)
    engine.pump()
    #expect(engine.statistics().unreadChunkCount > 0)
    #expect(try held?.whole() == root)
    #expect(engine.statistics().unreadChunkCount == 0)
    #expect(place.openFiles(".checkpoint").isEmpty)
    held = nil
    try engine.close()
  }

  @Test("the last reference to what was not read gives it up")
  func freed() throws {
    let place = try Place()
    _ = try Self.database(place)
    let engine = try Self.open(place)
    engine.submit(Draft(.set(.root, Node(.bool(true)))), completion: nil)
    engine.pump()
    #expect(engine.statistics().unreadChunkCount == 0)
    try engine.close()
  }

  @Test("after a purge no removed file is open, and what was not read is still there")
  func purged() throws {
    let place = try Place()
    var root = try Self.database(place)
    let engine = try Self.open(place)
    let held = try engine.node(at: .root)
    let heldRoot = root
    let secret = try path("o3")
    engine.submit(Draft(.remove(secret)), completion: nil)
    _ = root.apply(.remove(secret))
    engine.pump()
    #expect(!place.openFiles(".checkpoint").isEmpty)
    try engine.purgeHistory()
    #expect(place.openFiles(".checkpoint", "(deleted)").isEmpty)
    #expect(try held.whole() == heldRoot)
    #expect(try engine.wholeHead().root == root)
    try engine.close()
    let again = try Self.open(place)
    #expect(try again.wholeHead().root == root)
    try again.close()
  }

  @Test("a purge right after a checkpoint needs nothing of an older one")
  func purgedAgain() throws {
    let place = try Place()
    let root = try Self.database(place)
    let engine = try Self.open(place)
    try engine.purgeHistory()
    #expect(place.openFiles("(deleted)").isEmpty)
    #expect(engine.statistics().unreadChunkCount > 0)
    #expect(try engine.wholeHead().root == root)
    try engine.close()
  }
}
