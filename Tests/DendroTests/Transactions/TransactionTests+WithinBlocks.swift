import Dendro
import DendroTestSupport
import Dispatch
import Foundation
import Testing

extension TransactionTests {
  @Test("what the block writes comes after the transaction, and never waits", arguments: [1, 4, 5])
  func writesWithin(lastRun: Int) async throws {
    let database = Database.inMemory()
    let root = database.reference()
    let ref = root.child("p")
    try await ref.setValue(0)
    let recorder = Recorder(database)
    recorder.listen("", ref, [.value])
    _ = await recorder.take()
    let runs = Shared(0)
    let other = DispatchQueue(label: "other")
    await withCheckedContinuation { continuation in
      ref.runTransactionBlock({ data in
        let run = runs.withLock {
          $0 += 1
          return $0
        }
        // Its own write would be a conflict each time.
        ref.setValue(100 * run) { error, _ in recorder.note("wrote \(shown(error.map { "\($0)" }))")
        }
        ref.setValue(ServerValue.increment(1))
        // Also through another queue that borrows this thread.
        other.sync { root.updateChildValues(["p": ServerValue.increment(1), "seen": run]) }
        if run < lastRun, run < 4 { elsewhere { ref.setValue(run) } }
        data.value = ServerValue.increment(1)
        return .success(withValue: data)
      }) { error, committed, snapshot in
        recorder.note(line(error, committed, snapshot))
        continuation.resume()
      }
    }
    let count = min(lastRun, 4)
    #expect(runs.value == count)
    var expected = (1..<count).reduce(into: []) { $0.append("value \($1)") }
    expected.append("value \(count)")
    for run in 1...count {
      expected += [
        "value \(100 * run)", "value \(100 * run + 1)", "value \(100 * run + 2)",
      ]
    }
    // Completions come when the writes are settled, which may be between any two events.
    try await database.synchronize()
    let lines = await recorder.take()
    #expect(lines.filter { $0.hasPrefix("value") } == expected)
    let completions: [String] =
      ["nil, true, \(count)"] + Array(repeating: "wrote nil", count: count)
    #expect(lines.filter { !$0.hasPrefix("value") } == completions)
  }

  @Test("what the block writes is written also if the block gives up, fails or is closed upon")
  func writesWithinAbort() async throws {
    let ref = Database.inMemory().reference()
    let aborted = await ref.child("p").ending { _ in
      ref.child("a").setValue(1)
      return .abort()
    }
    #expect(aborted == "nil, false, null")
    let failed = await ref.child("p").ending { data in
      ref.child("b").setValue(1)
      data.value = Date()
      return .success(withValue: data)
    }
    #expect(failed == "InvalidFirebaseData, false, nil")
    #expect(shown(try await ref.getData().value) == "{a:1,b:1}")
  }

  @Test("the block's writes are kept if the database is closed in the transaction's completion")
  func writesWithinAndClose() async throws {
    for _ in 0..<50 {
      let directory = TemporaryDirectory()
      let options = DatabaseOptions(durability: .onRequest)
      let database = try await Database.open(at: directory.path, options: options)
      let ref = database.reference()
      let told = await ref.child("p").ending { data in
        for number in 0..<100 { ref.child("k/\(number)").setValue(number) }
        data.value = 1
        return .success(withValue: data)
      }
      try await database.close()
      #expect(told == "nil, true, 1")
      let again = try await Database.open(at: directory.path)
      #expect(try await again.reference().child("k").getData().childrenCount == 100)
      try await again.close()
    }
  }

  @Test("a transaction that the block starts runs after it and after those that wait already")
  func nested() async throws {
    let root = Database.inMemory().reference()
    let ref = root.child("p")
    let lines = Shared<[String]>([])
    @Sendable func step(_ name: String) -> @Sendable (MutableData) -> TransactionResult {
      { data in
        lines.withLock { $0.append(name) }
        data.value = (data.value as? String ?? "") + name
        return .success(withValue: data)
      }
    }
    let begins = DispatchSemaphore(value: 0)
    plainly {
      ref.runTransactionBlock { data in
        begins.wait()
        ref.runTransactionBlock(step("c"))
        ref.child("note").setValue(1)
        return step("a")(data)
      }
      ref.runTransactionBlock(step("b"))
      begins.signal()
    }
    try await ref.runTransactionBlock { _ in .abort() }
    try await ref.runTransactionBlock { _ in .abort() }
    #expect(lines.value == ["a", "b", "c"])
    #expect(shown(try await ref.getData().value) == "\"bc\"")
  }

  @Test("a block cannot queue without end")
  func withinLimits() async throws {
    let errors = Shared<[String]>([])
    var options = DatabaseOptions()
    options.errorHandler = { error in errors.withLock { $0.append(error.name) } }
    let database = Database.inMemory(options: options)
    let root = database.reference()
    try await root.child("p").runTransactionBlock { data in
      for _ in 0..<16_385 { root.child("writes").setValue(ServerValue.increment(1)) }
      for _ in 0..<16_386 {
        root.child("nested").runTransactionBlock { data in
          data.value = ServerValue.increment(1)
          return .success(withValue: data)
        }
      }
      return .abort()
    }
    try await root.runTransactionBlock { _ in .abort() }
    await settle(database)
    #expect(shown(try await root.getData().value) == "{nested:16384,writes:16384}")
    #expect(errors.value == Array(repeating: "TooManyWaiting", count: 3))
  }

  @Test("what a block reads from the database is what all see")
  func readsWithin() async throws {
    let ref = Database.inMemory().reference().child("p")
    try await ref.setValue(1)
    let seen = Shared<[Int?]>([])
    let ending = await ref.ending { data in
      data.value = 2
      ref.getData { _, snapshot in seen.withLock { $0.append(snapshot.int) } }
      return .success(withValue: data)
    }
    #expect(ending == "nil, true, 2")
    #expect(seen.value == [1])
  }
}
