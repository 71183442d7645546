import Dendro
import Dispatch
import Foundation
import Testing

/// When blocks are called: never within a call, in the order of the writes, on the callback queue.
@Suite("When events come")
struct EventTimingTests {
  let database = Database.inMemory()
  let queue = DispatchQueue(label: "callbacks")
  var root: DatabaseReference { database.reference() }

  init() { database.callbackQueue = queue }

  /// Runs `body` on the callback queue, where no block can be called meanwhile but from within a call.
  private func onQueue(_ body: @escaping @Sendable () -> Void) async {
    await withCheckedContinuation { continuation in
      queue.async {
        body()
        continuation.resume()
      }
    }
  }

  @Test("no block is called within the call that brings it about, not even with first events")
  func notWithin() async throws {
    let recorder = Recorder(database)
    let root = root
    await onQueue {
      root.observe(.value) { recorder.note("value \(shown($0.value))") }
      recorder.note("registered")
      root.observeSingleEvent(of: .value) { _ in recorder.note("single") }
      recorder.note("registered once")
      root.setValue(1) { _, _ in recorder.note("written") }
      recorder.note("set")
      root.child("a.b").setValue(1) { _, _ in recorder.note("refused") }
      recorder.note("tried")
      root.getData { _, _ in recorder.note("read") }
      recorder.note("asked")
      root.child("#").observe(
        .value, with: { _ in }, withCancel: { _ in recorder.note("cancelled") })
      recorder.note("tried to listen")
    }
    // Done once the writes before it are, whose completions are in the queue then.
    try await root.updateChildValues([:])
    let lines = await recorder.take()
    #expect(
      lines.prefix(6) == [
        "registered", "registered once", "set", "tried", "asked", "tried to listen",
      ])
    // In the order in which they were brought about; a write's completion comes when it is durable.
    let completions = ["written", "refused"]
    #expect(
      lines.dropFirst(6).filter { !completions.contains($0) }
        == ["value null", "single", "value 1", "read", "cancelled"])
    #expect(lines.filter { completions.contains($0) } == completions)
    root.removeAllObservers()
  }

  @Test("the events of a block's write come after the batch that it belongs to")
  func writesWithin() async throws {
    let recorder = Recorder(database)
    let root = root
    root.observe(.childAdded) { snapshot in
      recorder.note("first \(snapshot.key)")
      if snapshot.key == "a" { root.child("c").setValue(1) }
    }
    root.observe(.childAdded) { recorder.note("second \($0.key)") }
    root.observe(.value) { recorder.note("value \(shown($0.value))") }
    _ = await recorder.take()
    try await root.updateChildValues(["a": 1, "b": 1])
    await settle(database)
    #expect(
      await recorder.take() == [
        "first a", "second a", "first b", "second b", "value {a:1,b:1}", "first c", "second c",
        "value {a:1,b:1,c:1}",
      ])
    root.removeAllObservers()
  }

  @Test("all events of a write come before those of the next, over all locations")
  func batches() async throws {
    let recorder = Recorder(database)
    recorder.listen("deep", root.child("a/b"), [.value])
    recorder.listen("root", root, [.value])
    _ = await recorder.take()
    let root = root
    await onQueue {
      // Both are admitted before the first is delivered: still two batches.
      root.child("a/b").setValue(1)
      root.child("a/b").setValue(2)
    }
    #expect(
      await recorder.take() == [
        "deep:value 1", "root:value {a:{b:1}}", "deep:value 2", "root:value {a:{b:2}}",
      ])
  }

  @Test("a completion is given the reference that the call was made on")
  func sameReference() async throws {
    let ref = root.child("p")
    func same(
      _ call: (@escaping @Sendable (Error?, DatabaseReference) -> Void) -> Void
    ) async -> Bool {
      await withCheckedContinuation { continuation in
        call { error, given in continuation.resume(returning: error == nil && given === ref) }
      }
    }
    #expect(await same { ref.setValue(1, withCompletionBlock: $0) })
    #expect(await same { ref.setValue(1, andPriority: 2, withCompletionBlock: $0) })
    #expect(await same { ref.setPriority(3, withCompletionBlock: $0) })
    #expect(await same { ref.updateChildValues(["a": 1], withCompletionBlock: $0) })
    #expect(await same { ref.updateChildValues([:], withCompletionBlock: $0) })
    #expect(await same { ref.removeValue(completionBlock: $0) })
    #expect(await same { ref.onDisconnectSetValue(1, withCompletionBlock: $0) })
    #expect(await same { ref.onDisconnectSetValue(1, andPriority: 2, withCompletionBlock: $0) })
    #expect(await same { ref.onDisconnectUpdateChildValues(["a": 1], withCompletionBlock: $0) })
    #expect(await same { ref.onDisconnectRemoveValue(completionBlock: $0) })
    #expect(await same { ref.cancelDisconnectOperations(completionBlock: $0) })
  }

  @Test(
    "the default queue is the main queue if a run loop serves it, else one of the database's own"
  )
  func defaultQueue() async throws {
    let plain = Database.inMemory()
    #if canImport(Darwin)
      #expect(plain.callbackQueue === DispatchQueue.main)
    #else
      #expect(plain.callbackQueue !== DispatchQueue.main)
      #expect(plain.callbackQueue !== Database.inMemory().callbackQueue)
    #endif
    await settle(plain)
  }
}
