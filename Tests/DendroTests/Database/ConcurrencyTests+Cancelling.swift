import Dendro
import DendroEngine
import DendroPlatform
import DendroStorage
import DendroTesting
import Dispatch
import Foundation
import Synchronization
import Testing

extension ConcurrencyTests {
  // MARK: Cancelling

  @Test("a cancelled task's writes, reads, transactions and barriers go on to their end")
  func cancelled() async throws {
    let path = directory.path
    let database = try await Database.open(at: path)
    let ref = database.reference()
    let task = Task {
      while !Task.isCancelled { await Task.yield() }
      try await ref.child("set").setValue(1)
      try await ref.child("sum").setValue(ServerValue.increment(2))
      #expect(try await ref.child("set").getData().int == 1)
      let (committed, _) = try await ref.child("sum").runTransactionBlock { data in
        data.value = (data.value as? Int ?? 0) * 10
        return .success(withValue: data)
      }
      #expect(committed)
      try await ref.child("sum").transaction { data in data.value = (data.value as? Int ?? 0) + 1 }
      try await database.synchronize()
      try await database.checkpoint()
      try await database.backup(to: path + "-copy")
      try await database.close()
      let reopened = try await Database.open(at: path)
      #expect(shown(try await reopened.reference().getData().value) == "{set:1,sum:21}")
      try await reopened.close()
    }
    task.cancel()
    try await task.value
    let copy = try await Database.open(at: path + "-copy")
    #expect(shown(try await copy.reference().getData().value) == "{set:1,sum:21}")
    try await copy.close()
    try FileManager.default.removeItem(atPath: path + "-copy")
  }

  @Test("what a cancelled task registers is called as ever, and its snapshots and references stay")
  func cancelledCallbacks() async throws {
    let database = Database.inMemory()
    let recorder = Recorder(database)
    let task = Task {
      while !Task.isCancelled { await Task.yield() }
      let ref = database.reference().child("a")
      let before = try await ref.getData()
      plainly {
        ref.observe(.value) { recorder.note("value \(shown($0.value))") }
        ref.setValue(1) { error, _ in recorder.note("written \(error == nil)") }
        ref.runTransactionBlock(
          { data in
            data.value = 2
            return .success(withValue: data)
          }, andCompletionBlock: { _, committed, _ in recorder.note("committed \(committed)") })
      }
      return (before, ref)
    }
    task.cancel()
    let (before, ref) = try await task.value
    try await ref.runTransactionBlock { _ in .abort() }
    #expect(
      await recorder.take().filter { !$0.hasPrefix("value") } == ["written true", "committed true"])
    #expect(!before.exists())
    try await ref.setValue(3)
    #expect(await recorder.take() == ["value 3"])
    ref.removeAllObservers()
  }

  @Test(
    "a cancelled wait for a single event ends with nothing, and its listener is removed",
    arguments: [false, true])
  func cancelledWait(beforeItBegins: Bool) async throws {
    for type in [DataEventType.childAdded, .childChanged, .childMoved, .childRemoved] {
      let database = Database.inMemory()
      let ref = database.reference().child("place")
      let goesOn = Shared(false)
      let task = Task {
        while beforeItBegins, !Task.isCancelled { await Task.yield() }
        goesOn.withLock { $0 = true }
        return await ref.observeSingleEventAndPreviousSiblingKey(of: type)
      }
      if !beforeItBegins {
        while database.listenedCount == 0 { await Task.yield() }
      }
      task.cancel()
      let (snapshot, previous) = await task.value
      #expect(!snapshot.exists() && snapshot.key == "place" && previous == nil)
      #expect(database.listenedCount == 0)
      try await database.close()
    }
  }

  @Test("a wait that is cancelled while its event comes returns the event or nothing, once")
  func cancelledWithEvent() async throws {
    let database = Database.inMemory()
    let ref = database.reference().child("place")
    for _ in 0..<200 {
      let task = Task { await ref.observeSingleEventAndPreviousSiblingKey(of: .childAdded) }
      while database.listenedCount == 0 { await Task.yield() }
      plainly { ref.child("a").setValue(1) }
      task.cancel()
      let (snapshot, _) = await task.value
      #expect(snapshot.key == (snapshot.exists() ? "a" : "place"))
      #expect(database.listenedCount == 0)
      try await ref.removeValue()
    }
  }

  @Test("a wait that is cancelled at any moment leaves no listener")
  func cancelledAnywhere() async throws {
    let database = Database.inMemory()
    let ref = database.reference().child("place")
    for round in 0..<2000 {
      let begun = Shared(false)
      let task = Task {
        begun.withLock { $0 = true }
        _ = await ref.observeSingleEventAndPreviousSiblingKey(of: .childAdded)
      }
      await withCheckedContinuation { continuation in
        Thread.detachNewThread {
          // To the moment where it begins soon; if other tests hold the threads, without taking theirs.
          var roundCount = 0
          while !begun.withLock({ $0 }) {
            roundCount += 1
            if roundCount < 1000 { sched_yield() } else { usleep(100) }
          }
          for _ in 0..<round % 40 * 20 { _ = database.listenedCount }
          task.cancel()
          continuation.resume()
        }
      }
      await task.value
      #expect(database.listenedCount == 0)
    }
  }
}
