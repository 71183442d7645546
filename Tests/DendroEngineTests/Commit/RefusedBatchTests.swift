import DendroStorage
import DendroTestSupport
import DendroTesting
import DendroTree
import Foundation
import Testing

@testable import DendroEngine

/// A batch that is in the log's file when its synchronize fails.
@Suite("A refused batch in the file")
struct RefusedBatchTests {
  @Test(
    "is not there after reopening, and what was acknowledged before it is",
    arguments: [.none, .interval(.seconds(3600)), .everyCommit] as [Durability])
  func reopened(durability: Durability) throws {
    let held = HeldDisk()
    var options = EngineOptions()
    options.durability = durability
    let engine = try Engine.open(at: "/db", options: options, environment: held.environment)
    let results = Received<Bool>()
    held.hold(.write)
    engine.submit(try set("first", .integer(1))) { results.add((try? $0.get()) != nil) }
    held.waitForCall()
    // Both are in the next batch.
    engine.submit(try set("refused", .integer(1))) { results.add((try? $0.get()) != nil) }
    engine.pipeline.requestSynchronize { _ in }
    let isFirst: Bool = if case .everyCommit = durability { false } else { true }
    held.disk.inject(.failedSynchronize(at: isFirst ? 1 : 2, pages: .kept))
    held.release()
    while results.all.count < 2 { usleep(100) }
    #expect(throws: EngineError.self) { try engine.synchronize() }
    #expect(results.all == [true, false])
    #expect(engine.head.root.childCount == 1)
    try? engine.close()
    held.disk.removeFaults()
    let again = try Engine.open(at: "/db", environment: held.disk.environment)
    #expect(again.head.root == Node(.integer(1)).placed(at: "first"))
    try again.close()
  }
}

extension Node {
  fileprivate func placed(at name: String) -> Node {
    var root = Node.empty
    guard let path = try? Path(parsing: name) else { return .empty }
    root.graft(self, at: path)
    return root
  }
}
