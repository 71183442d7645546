import Dendro
import DendroEngine
import DendroPlatform
import DendroStorage
import DendroTesting
import Dispatch
import Foundation
import Testing

extension ConcurrencyTests {
  // MARK: Closing

  @Test("closing: admitted writes are written to the disk, and their completions are called")
  func closingWithWrites() async throws {
    let database = try await Database.open(at: directory.path)
    let ref = database.reference()
    let results = Shared<[Bool]>([])
    var waiting: [Task<Void, any Error>] = []
    for number in 0..<20 {
      waiting.append(Task { _ = try await ref.child("task\(number)").setValue(number) })
    }
    plainly {
      for number in 0..<20 {
        ref.child("block\(number)").setValue(number) { error, _ in
          results.withLock { $0.append(error == nil) }
        }
      }
    }
    try await database.close()
    await settle(database)
    #expect(results.value == Array(repeating: true, count: 20))
    var written = 20
    for task in waiting {
      // A task that came too late was refused, and nothing else.
      if let error = await failure({ try await task.value }) {
        #expect(error.code == .closed)
      } else {
        written += 1
      }
    }
    let reopened = try await Database.open(at: directory.path)
    #expect(try await reopened.reference().getData().childrenCount == UInt(written))
    try await reopened.close()
  }

  @Test("after closing: snapshots are readable, references know where they are")
  func afterClosing() async throws {
    let database = try await Database.open(at: directory.path)
    let ref = database.reference().child("a")
    try await ref.setValue(["b": ["c": 1], "d": "e"])
    let snapshot = try await ref.getData()
    try await database.close()
    #expect(shown(snapshot.value) == #"{b:{c:1},d:"e"}"#)
    #expect(snapshot["b/c"].int == 1)
    #expect(snapshot.map(\.key) == ["b", "d"])
    #expect(ref.key == "a" && ref.parent == database.reference())
    #expect(ref.child("x").url == database.reference().url + "/a/x")
    #expect(await failure { try await snapshot.ref.setValue(1) }?.code == .closed)
    #expect(await failure { _ = try await ref.queryOrderedByKey().getData() }?.code == .closed)
  }

  @Test("a block may close the database, and what is queued behind it still comes")
  func closingInABlock() async throws {
    let database = try await Database.open(at: directory.path)
    let ref = database.reference()
    let recorder = Recorder(database)
    ref.observe(
      .value,
      with: { snapshot in
        recorder.note("value \(shown(snapshot.value))")
        if snapshot.exists() {
          do { try database.close() } catch { recorder.note("\(error)") }
          do { try database.close() } catch { recorder.note("\(error)") }
        }
      }, withCancel: { _ in recorder.note("cancelled") })
    await settle(database)
    await withCheckedContinuation { continuation in
      ref.setValue(1) { error, _ in
        recorder.note("written \(error == nil)")
        continuation.resume()
      }
    }
    #expect(await recorder.take() == ["value null", "value 1", "written true", "cancelled"])
  }

  @Test("many may close at once")
  func closingAtOnce() async throws {
    let database = try await Database.open(at: directory.path)
    try await database.reference().setValue(1)
    await withTaskGroup(of: Void.self) { group in
      for _ in 0..<8 {
        group.addTask { #expect(await failure { try await database.close() } == nil) }
      }
    }
    #expect(await failure { try await database.synchronize() }?.code == .closed)
  }
}
