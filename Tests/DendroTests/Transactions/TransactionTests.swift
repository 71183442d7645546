import Dendro
import DendroEngine
import DendroStorage
import DendroTesting
import Dispatch
import Foundation
import DendroTestSupport
import Testing

/// Runs `body` on a thread of its own.
private func start(_ body: @escaping @Sendable () -> Void) { Thread.detachNewThread(body) }

/// Runs `body` on a thread of its own, and waits for its end.
private func elsewhere(_ body: @escaping @Sendable () -> Void) {
  let done = DispatchSemaphore(value: 0)
  start {
    body()
    done.signal()
  }
  done.wait()
}

/// How a transaction ended, in one line: error, committed, snapshot.
private func line(_ error: (any Error)?, _ committed: Bool, _ snapshot: DataSnapshot?) -> String {
  let error = (error as? DatabaseError)?.name ?? error.map { "\($0)" } ?? "nil"
  return "\(error), \(committed), \(snapshot.map { shown($0.valueInExportFormat()) } ?? "nil")"
}

extension DatabaseReference {
  /// `runTransactionBlock` with a completion block, awaited.
  fileprivate func ending(
    _ block: @escaping @Sendable (MutableData) -> TransactionResult
  ) async -> String {
    await withCheckedContinuation { continuation in
      runTransactionBlock(block) { error, committed, snapshot in
        continuation.resume(returning: line(error, committed, snapshot))
      }
    }
  }

  fileprivate var int: Int? { get async throws { try await getData().int } }
}

@Suite("Transactions")
struct TransactionTests {
  // MARK: How they end

  struct Row: Sendable, CustomTestStringConvertible {
    let name: String
    nonisolated(unsafe) let state: Any?
    let block: @Sendable (MutableData) -> TransactionResult
    let completion: String
    let events: [String]
    let after: String
    var testDescription: String { name }

    init(
      _ name: String, at state: Any?, completion: String, events: [String], after: String,
      _ block: @escaping @Sendable (MutableData) -> TransactionResult
    ) {
      self.name = name
      self.state = state
      self.block = block
      self.completion = completion
      self.events = events
      self.after = after
    }
  }

  static let table: [Row] = [
    Row(
      "another value", at: 5, completion: "nil, true, 6", events: ["changed p=6 after nil"],
      after: "6"
    ) { data in
      data.value = 6
      return .success(withValue: data)
    },
    Row("abort", at: 5, completion: "nil, false, 5", events: [], after: "5") { data in
      data.value = 7
      return .abort()
    },
    Row(
      "of nothing", at: nil, completion: "nil, true, 1", events: ["added p=1 after nil"], after: "1"
    ) { data in
      data.value = data.value is NSNull ? 1 : 2
      return .success(withValue: data)
    },
    Row("abort of nothing", at: nil, completion: "nil, false, null", events: [], after: "null") {
      _ in .abort()
    },
    Row("unchanged", at: 5, completion: "nil, true, 5", events: [], after: "5") {
      .success(withValue: $0)
    },
    Row("equal", at: 5, completion: "nil, true, 5", events: [], after: "5") { data in
      data.value = 5.0
      return .success(withValue: data)
    },
    Row(
      "a value loses the priority", at: [".value": 5, ".priority": 2], completion: "nil, true, 6",
      events: ["moved p=6 after nil", "changed p=6 after nil"], after: "6"
    ) { data in
      data.value = 6
      return .success(withValue: data)
    },
    Row(
      "unchanged keeps the priority", at: [".value": 5, ".priority": 2],
      completion: "nil, true, {.priority:2,.value:5}", events: [],
      after: "{.priority:2,.value:5}"
    ) { .success(withValue: $0) },
    Row(
      "another priority", at: [".value": 5, ".priority": 2],
      completion: "nil, true, {.priority:3,.value:5}",
      events: [
        "moved p={.priority:3,.value:5} after nil", "changed p={.priority:3,.value:5} after nil",
      ], after: "{.priority:3,.value:5}"
    ) { data in
      data.priority = 3
      return .success(withValue: data)
    },
    Row(
      "removal", at: 5, completion: "nil, true, null", events: ["removed p=5"], after: "null"
    ) { data in
      data.value = nil
      return .success(withValue: data)
    },
    Row(
      "increment", at: 5, completion: "nil, true, 7", events: ["changed p=7 after nil"], after: "7"
    ) { data in
      data.value = ServerValue.increment(2)
      return .success(withValue: data)
    },
    Row(
      "a path in nothing", at: nil, completion: "nil, true, {a:{b:1}}",
      events: ["added p={a:{b:1}} after nil"], after: "{a:{b:1}}"
    ) { data in
      data.childData(byAppendingPath: "a/b").value = 1
      return .success(withValue: data)
    },
  ]

  @Test("what the block gives, the completion, the events and the state", arguments: table)
  func rows(_ row: Row) async throws {
    let directory = TemporaryDirectory()
    for place in ["memory", "disk"] {
      let database =
        try await place == "memory" ? Database.inMemory() : Database.open(at: directory.path)
      let parent = database.reference().child("top")
      let ref = parent.child("p")
      try await ref.setValue(row.state)
      let recorder = Recorder(database)
      recorder.listen(
        "", parent, [.childAdded, .childChanged, .childMoved, .childRemoved])
      _ = await recorder.take()
      let writeCount = database.statistics.writeCount

      let completion: String = await withCheckedContinuation { continuation in
        ref.runTransactionBlock(row.block) { error, committed, snapshot in
          recorder.note("completion")
          continuation.resume(returning: line(error, committed, snapshot))
        }
      }
      #expect(completion == row.completion)
      // The events come before the completion, and all in one batch.
      #expect(await recorder.take() == row.events + ["completion"])
      #expect(shown(try await ref.getData().valueInExportFormat()) == row.after)
      #expect(database.statistics.writeCount == writeCount + (row.events.isEmpty ? 0 : 1))
      try await database.close()
      if place == "disk" {
        let reopened = try await Database.open(at: directory.path)
        let snapshot = try await reopened.reference().child("top/p").getData()
        #expect(shown(snapshot.valueInExportFormat()) == row.after)
        try await reopened.close()
      }
    }
  }

  @Test("the same through every form", arguments: table)
  func forms(_ row: Row) async throws {
    for form in ["async", "local events", "no local events", "nobody waits"] {
      let ref = Database.inMemory().reference().child("p")
      try await ref.setValue(row.state)
      var completion: String?
      switch form {
      case "async":
        let (committed, snapshot) = try await ref.runTransactionBlock(row.block)
        completion = line(nil, committed, snapshot)
      case "nobody waits":
        plainly {
          ref.runTransactionBlock(row.block)
          ref.runTransactionBlock(
            { .success(withValue: $0) }, andCompletionBlock: nil, withLocalEvents: false)
        }
        // Behind it, so it has ended then.
        try await ref.runTransactionBlock { _ in .abort() }
      default:
        completion = await withCheckedContinuation { continuation in
          ref.runTransactionBlock(
            row.block,
            andCompletionBlock: { continuation.resume(returning: line($0, $1, $2)) },
            withLocalEvents: form == "local events")
        }
      }
      if let completion { #expect(completion == row.completion, "\(form)") }
      #expect(shown(try await ref.getData().valueInExportFormat()) == row.after, "\(form)")
    }
  }

  struct SoldOut: Error, Equatable {}

  @Test("the form with a plain body: returns what it returns, throws what it throws")
  func body() async throws {
    let stock = Database.inMemory().reference().child("stock")
    try await stock.setValue(2)
    let take: @Sendable (MutableData) throws -> Int = { stock in
      let count = stock.value as? Int ?? 0
      stock.value = count - 1
      guard count > 0 else { throw SoldOut() }
      return count - 1
    }
    #expect(try await stock.transaction(take) == 1)
    #expect(try await stock.transaction(take) == 0)
    await #expect(throws: SoldOut()) { try await stock.transaction(take) }
    #expect(try await stock.int == 0)
    #expect(try await stock.transaction { $0.value as? String } == nil)
  }

  @Test("as an app writes it: a star is given and taken back")
  func star() async throws {
    let ref = Database.inMemory().reference().child("posts/p")
    try await ref.setValue(["title": "Rings", "starCount": 1, "stars": ["bob": true]])
    func toggle(_ user: String?) async -> String {
      await withCheckedContinuation { continuation in
        ref.runTransactionBlock({ (currentData: MutableData) -> TransactionResult in
          if var post = currentData.value as? [String: AnyObject], let user {
            var stars = post["stars"] as? [String: Bool] ?? [:]
            var starCount = post["starCount"] as? Int ?? 0
            if stars.removeValue(forKey: user) != nil {
              starCount -= 1
            } else {
              starCount += 1
              stars[user] = true
            }
            post["starCount"] = starCount as AnyObject?
            post["stars"] = stars as AnyObject?
            currentData.value = post
          }
          return TransactionResult.success(withValue: currentData)
        }) { error, committed, snapshot in
          continuation.resume(returning: line(error, committed, snapshot))
        }
      }
    }
    #expect(
      await toggle("ada")
        == "nil, true, {starCount:2,stars:{ada:true,bob:true},title:\"Rings\"}")
    #expect(await toggle("bob") == "nil, true, {starCount:1,stars:{ada:true},title:\"Rings\"}")
    #expect(await toggle("ada") == "nil, true, {starCount:0,title:\"Rings\"}")
    #expect(await toggle(nil) == "nil, true, {starCount:0,title:\"Rings\"}")
  }

  // MARK: Several

  @Test("they run in the order in which they were started, each on what the one before left")
  func order() async throws {
    let database = Database.inMemory()
    let root = database.reference()
    try await root.child("x").setValue(10)
    let recorder = Recorder(database)
    recorder.listen("", root, [.value])
    _ = await recorder.take()
    let lines: [String] = await withCheckedContinuation { continuation in
      let ended = Shared<[String]>([])
      @Sendable func end(_ name: String) -> @Sendable (Error?, Bool, DataSnapshot?) -> Void {
        { error, committed, snapshot in
          let all = ended.withLock { lines in
            lines.append("\(name): \(line(error, committed, snapshot))")
            return lines
          }
          if all.count == 3 { continuation.resume(returning: all) }
        }
      }
      root.child("x").runTransactionBlock(
        { data in
          data.value = (data.value as? Int ?? 0) * 2
          return .success(withValue: data)
        }, andCompletionBlock: end("x"))
      root.child("y").runTransactionBlock(
        { data in
          data.value = 3
          return .success(withValue: data)
        }, andCompletionBlock: end("y"))
      root.runTransactionBlock(
        { data in
          let x = data.childData(byAppendingPath: "x").value as? Int ?? 0
          let y = data.childData(byAppendingPath: "y").value as? Int ?? 0
          data.value = x * y
          return .success(withValue: data)
        }, andCompletionBlock: end("root"))
    }
    #expect(lines == ["x: nil, true, 20", "y: nil, true, 3", "root: nil, true, 60"])
    #expect(await recorder.take() == ["value {x:20}", "value {x:20,y:3}", "value 60"])
  }

  @Test("many that nobody waits for all run")
  func many() async throws {
    let ref = Database.inMemory().reference().child("n")
    plainly {
      for _ in 0..<20_000 {
        ref.runTransactionBlock { data in
          data.value = ServerValue.increment(1)
          return .success(withValue: data)
        }
      }
    }
    let (_, snapshot) = try await ref.runTransactionBlock { .success(withValue: $0) }
    #expect(snapshot.int == 20_000)
  }

  // MARK: Conflicts

  //   block                    another thread
  //   ─────                    ──────────────
  //   is given 1
  //                            set 10
  //   decides on 2
  //   is given 10
  //   decides on 11, admitted
  @Test(
    "a write that comes between makes the block run again",
    arguments: ["p", "", "p/a", "update", "update above", "removal", "priority"])
  func conflict(write: String) async throws {
    let root = Database.inMemory().reference()
    let ref = root.child("p")
    try await ref.setValue([".priority": 1, "a": 1, "b": 1])
    let inputs = Shared<[String]>([])
    let ending = await ref.ending { data in
      let input = shown(data.value)
      let count = inputs.withLock {
        $0.append(input)
        return $0.count
      }
      if count == 1 {
        elsewhere {
          switch write {
          case "p": ref.setValue(["a": 10])
          case "": root.setValue(["p": ["a": 10]])
          case "p/a": ref.child("a").setValue(10)
          case "update": ref.updateChildValues(["a": 10])
          case "update above": root.updateChildValues(["other": 1, "p/a": 10])
          case "removal": ref.removeValue()
          default: ref.setPriority(10)
          }
        }
      }
      data.childData(byAppendingPath: "a").value = ServerValue.increment(1)
      return .success(withValue: data)
    }
    #expect(inputs.withLock { $0.count } == 2)
    #expect(inputs.withLock { $0[0] } == "{a:1,b:1}")
    let expected =
      switch write {
      case "p", "": "{a:11}"
      case "removal": "{a:1}"
      case "priority": "{.priority:10,a:2,b:1}"
      default: "{.priority:1,a:11,b:1}"
      }
    #expect(ending == "nil, true, \(expected)")
    #expect(shown(try await ref.getData().valueInExportFormat()) == expected)
  }

  @Test("writes elsewhere, and writes that change nothing, are no conflict")
  func noConflict() async throws {
    let root = Database.inMemory().reference()
    let ref = root.child("p")
    try await ref.setValue(["a": 1])
    let runs = Shared(0)
    let ending = await ref.ending { data in
      runs.withLock { $0 += 1 }
      elsewhere {
        root.child("q").setValue(1)
        root.updateChildValues(["r/s": 1, "pp": 1])
        ref.setValue(["a": 1.0])
        ref.child("a").setValue(1)
        ref.child("b").removeValue()
        // There and back again.
        ref.child("b").setValue(2)
        ref.child("b").removeValue()
      }
      data.childData(byAppendingPath: "a").value = 2
      return .success(withValue: data)
    }
    #expect(ending == "nil, true, {a:2}")
    #expect(runs.withLock { $0 } == 1)
  }

  @Test("a block that gives up is not run again")
  func abortInConflict() async throws {
    let ref = Database.inMemory().reference().child("p")
    try await ref.setValue(1)
    let ending = await ref.ending { _ in
      elsewhere { ref.setValue(2) }
      return .abort()
    }
    #expect(ending == "nil, false, 1")
    #expect(try await ref.int == 2)
  }

  @Test("unchanged data that are no longer there make the block run again")
  func unchangedInConflict() async throws {
    let ref = Database.inMemory().reference().child("p")
    try await ref.setValue(1)
    let runs = Shared(0)
    let ending = await ref.ending { data in
      let run = runs.withLock {
        $0 += 1
        return $0
      }
      if run == 1 { elsewhere { ref.setValue(2) } }
      return .success(withValue: data)
    }
    #expect(ending == "nil, true, 2")
    #expect(runs.withLock { $0 } == 2)
  }

  /// Writers wait as long as it takes, so that a test that depends on it cannot pass by chance.
  private func patientDatabase() -> Database {
    var options = DatabaseOptions()
    options.reservationTimeout = .seconds(3600)
    return Database.inMemory(options: options)
  }

  //   block                    another thread
  //   ─────                    ──────────────
  //   runs 1, 2, 3             writes in each: conflict
  //   run 4                    begins to write, waits
  //   admitted
  //                            its write is admitted
  @Test(
    "after three conflicts writes at related paths wait",
    arguments: ["p/q", "p", "", "p/q/deep", "update", "update above"])
  func reservation(write: String) async throws {
    let database = patientDatabase()
    let root = database.reference()
    let ref = root.child("p/q")
    try await ref.setValue(["n": 0])
    let recorder = Recorder(database)
    recorder.listen("", ref.child("n"), [.value])
    _ = await recorder.take()
    let runs = Shared(0)
    let written = DispatchSemaphore(value: 0)
    let ending = await ref.ending { data in
      let run = runs.withLock {
        $0 += 1
        return $0
      }
      if run < 4 {
        elsewhere { ref.child("n").setValue(run * 10) }
      } else if run == 4 {
        start {
          switch write {
          case "p/q": ref.setValue(["n": 99])
          case "p": root.child("p").setValue(["q": ["n": 99]])
          case "": root.setValue(["p": ["q": ["n": 99]]])
          case "p/q/deep": ref.child("n").setValue(99)
          case "update": ref.updateChildValues(["m": 1, "n": 99])
          default: root.updateChildValues(["other": 1, "p/q/n": 99])
          }
          written.signal()
        }
        // Until it waits; were it admitted instead, there would be a fifth run.
        while database.engine!.waitingWriterCount == 0,
          database.statistics.lastWrite < 5
        {
          usleep(1000)
        }
        // Writes that are not related do not wait.
        elsewhere {
          root.child("p/other").setValue(1)
          root.updateChildValues(["p/qq": 1, "x": 1])
          root.updateChildValues([:])
        }
      }
      data.childData(byAppendingPath: "n").value = ServerValue.increment(1)
      return .success(withValue: data)
    }
    try #require(runs.withLock { $0 } == 4)
    #expect(ending == "nil, true, {n:31}")
    await withCheckedContinuation { continuation in
      start {
        written.wait()
        continuation.resume()
      }
    }
    #expect(await recorder.take() == ["value 10", "value 20", "value 30", "value 31", "value 99"])
    #expect(database.engine!.waitingWriterCount == 0)
  }

  //   block                    another thread
  //   ─────                    ──────────────
  //   runs 1, 2, 3             writes in each: conflict
  //   run 4, waits for it      begins to write, waits until its patience ends: conflict
  //   runs 5 to 25             writes in each and does not wait
  @Test("a block that waits for a writer each time makes it wait once")
  func patienceOnce() async throws {
    var options = DatabaseOptions()
    options.reservationTimeout = .milliseconds(300)
    let database = Database.inMemory(options: options)
    let ref = database.reference().child("p")
    let runs = Shared<[Bool]>([])
    let error = await failure {
      try await ref.runTransactionBlock { data in
        let run = runs.withLock { $0.count }
        let isWritten = Shared(false)
        start {
          ref.setValue(run)
          isWritten.withLock { $0 = true }
        }
        var hasWaited = false
        while !isWritten.withLock({ $0 }) {
          if database.engine!.waitingWriterCount > 0 { hasWaited = true }
          usleep(1000)
        }
        runs.withLock { [hasWaited] in $0.append(hasWaited) }
        data.value = -1
        return .success(withValue: data)
      }
    }
    #expect(error?.code == .maxRetry)
    #expect(runs.withLock { $0.filter { $0 }.count } == 1)
    #expect(runs.withLock { $0.count == 25 && $0[3] })
    #expect(try await ref.int == 24)
  }

  @Test("a block that waits for a writer each time ends after 25 runs")
  func maxRetry() async throws {
    var options = DatabaseOptions()
    options.reservationTimeout = .milliseconds(1)
    let ref = Database.inMemory(options: options).reference().child("p")
    let runs = Shared(0)
    let error = await failure {
      try await ref.runTransactionBlock { data in
        let run = runs.withLock {
          $0 += 1
          return $0
        }
        elsewhere { ref.setValue(run) }
        data.value = -1
        return .success(withValue: data)
      }
    }
    #expect(error?.code == .maxRetry && error?.errorCode == 9999 && error?.name == "maxretry")
    #expect(error?.message.contains("25 runs of the transaction at /p") == true)
    #expect(runs.withLock { $0 } == 25)
    #expect(try await ref.int == 25)
    #expect(
      await ref.ending {
        .success(withValue: $0)
      } == "nil, true, 25")
  }

  // MARK: Writes from within a block

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
    #expect(runs.withLock { $0 } == count)
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
    #expect(
      lines.filter { !$0.hasPrefix("value") }
        == ["nil, true, \(count)"] + Array(repeating: "wrote nil", count: count))
  }

  @Test("what the block writes is written also where the block gives up, fails or is closed upon")
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

  @Test("what the block wrote is kept where the database is closed once the transaction is told")
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
    #expect(lines.withLock { $0 } == ["a", "b", "c"])
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
    #expect(errors.withLock { $0 } == Array(repeating: "TooManyWaiting", count: 3))
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
    #expect(seen.withLock { $0 } == [1])
  }

  // MARK: Errors

  @Test("a bad reference, in its turn")
  func badReference() async throws {
    let handled = Shared<[String]>([])
    var options = DatabaseOptions()
    options.errorHandler = { error in handled.withLock { $0.append(error.name) } }
    let database = Database.inMemory(options: options)
    let bad = database.reference().child("a.b")
    let error = await failure {
      try await bad.runTransactionBlock { data in
        Issue.record("ran")
        return .success(withValue: data)
      }
    }
    #expect(error?.code == .invalidPath)
    #expect(await bad.ending { _ in .abort() } == "InvalidPathValidation, false, nil")
    plainly { bad.runTransactionBlock { _ in .abort() } }
    try await database.reference().runTransactionBlock { _ in .abort() }
    await settle(database)
    #expect(handled.withLock { $0 } == ["InvalidPathValidation"])

    let recorder = Recorder(database)
    plainly {
      for (name, ref) in [("first", database.reference()), ("bad", bad)] {
        ref.runTransactionBlock(
          { data in
            data.value = 1
            return .success(withValue: data)
          }, andCompletionBlock: { error, _, _ in recorder.note("\(name) \(error == nil)") })
      }
    }
    try await database.reference().runTransactionBlock { _ in .abort() }
    #expect(await recorder.take() == ["first true", "bad false"])
  }

  @Test("a database that takes no writes does not run the block")
  func refusals() async throws {
    let directory = TemporaryDirectory()
    let database = try await Database.open(at: directory.path)
    try await database.reference().setValue(1)
    try await database.close()
    let readOnly = try await Database.open(readOnly: directory.path)
    for (database, name) in [(database, "DatabaseClosed"), (readOnly, "DatabaseReadOnly")] {
      let ran = Shared(false)
      let block: @Sendable (MutableData) -> TransactionResult = { data in
        ran.withLock { $0 = true }
        return .success(withValue: data)
      }
      let ref = database.reference()
      #expect(await failure { try await ref.runTransactionBlock(block) }?.name == name)
      #expect(await failure { try await ref.transaction { _ = block($0) } }?.name == name)
      #expect(await ref.ending(block) == "\(name), false, nil")
      #expect(!ran.withLock { $0 })
    }
    #expect(try await readOnly.reference().int == 1)
    try await readOnly.close()
  }

  @Test("a write that is too large, and a tree that has no room")
  func limits() async throws {
    var options = DatabaseOptions()
    options.writeByteLimit = 1000
    options.memoryByteLimit = 1 << 16
    let ref = Database.inMemory(options: options).reference().child("p")
    #expect(
      await ref.ending { data in
        data.value = String(repeating: "x", count: 2000)
        return .success(withValue: data)
      } == "WriteTooLarge, false, nil")
    var error: DatabaseError?
    for number in 0..<1000 where error == nil {
      error = await failure {
        try await ref.parent!.child("\(number)").transaction {
          $0.value = String(repeating: "x", count: 500)
        }
      }
    }
    #expect(error?.code == .memoryLimit)
  }

  @Test("a disk that refuses: the error, and the events that lead back")
  func refusingDisk() async throws {
    let disk = SimulatedDisk(seed: 1)
    let database = try Database.open(
      at: "/db", options: DatabaseOptions(),
      environment: Environment(
        fileSystem: disk, clock: SimulatedClock(), randomness: SeededRandomness(seed: 1)),
      mode: .readWrite)
    let ref = database.reference().child("p")
    try await ref.setValue(1)
    let recorder = Recorder(database)
    recorder.listen("", ref, [.value])
    _ = await recorder.take()
    disk.inject(.failedSynchronize(at: 1, pages: .kept))
    let block: @Sendable (MutableData) -> TransactionResult = { data in
      data.value = ServerValue.increment(1)
      return .success(withValue: data)
    }
    #expect(await ref.ending(block) == "DatabasePoisoned, false, nil")
    #expect(await recorder.take() == ["value 2", "value 1"])
    #expect(await ref.ending(block) == "DatabasePoisoned, false, nil")
    #expect(await ref.ending { _ in .abort() } == "DatabasePoisoned, false, nil")
    #expect(await recorder.take() == [])
    _ = await failure { try await database.close() }
  }

  // MARK: Closing

  @Test("closing waits for no block: what was not admitted fails")
  func closing() async throws {
    let directory = TemporaryDirectory()
    let database = try await Database.open(at: directory.path)
    let ref = database.reference().child("p")
    try await ref.setValue(1)
    let recorder = Recorder(database)
    let inBlock = DispatchSemaphore(value: 0)
    let isClosed = DispatchSemaphore(value: 0)
    plainly {
      ref.runTransactionBlock { data in
        data.value = 2
        ref.setValue(3) { error, _ in
          recorder.note("within: \((error as? DatabaseError)?.name ?? "nil")")
        }
        inBlock.signal()
        isClosed.wait()
        return .success(withValue: data)
      } andCompletionBlock: {
        recorder.note("running: \(line($0, $1, $2))")
      }
      ref.runTransactionBlock { data in
        recorder.note("ran")
        return .success(withValue: data)
      } andCompletionBlock: {
        recorder.note("waiting: \(line($0, $1, $2))")
        inBlock.signal()
      }
    }
    await withCheckedContinuation { continuation in
      start {
        inBlock.wait()
        #expect(throws: Never.self) { try database.close() }
        isClosed.signal()
        inBlock.wait()
        continuation.resume()
      }
    }
    #expect(
      await recorder.take() == [
        "within: nil", "running: DatabaseClosed, false, nil",
        "waiting: DatabaseClosed, false, nil",
      ])
    let reopened = try await Database.open(at: directory.path)
    #expect(try await reopened.reference().child("p").int == 3)
    try await reopened.close()
  }

  @Test("a block may close the database, and writers that wait for it are let go")
  func closingWithin() async throws {
    let database = patientDatabase()
    let ref = database.reference().child("p")
    let runs = Shared(0)
    let writer = Shared<String?>(nil)
    let ended = DispatchSemaphore(value: 0)
    let ending = await ref.ending { data in
      let run = runs.withLock {
        $0 += 1
        return $0
      }
      if run < 4 {
        elsewhere { ref.setValue(run) }
      } else {
        start {
          ref.setValue(5) { error, _ in
            let name = (error as? DatabaseError)?.name
            writer.withLock { $0 = name }
            ended.signal()
          }
        }
        while database.engine!.waitingWriterCount == 0, database.statistics.lastWrite < 4 {
          usleep(1000)
        }
        #expect(throws: Never.self) { try database.close() }
        ended.wait()
      }
      data.value = -1
      return .success(withValue: data)
    }
    #expect(ending == "DatabaseClosed, false, nil")
    #expect(writer.withLock { $0 } == "DatabaseClosed")
    #expect(runs.withLock { $0 } == 4)
  }

  @Test("a transaction holds its database until it has ended")
  func holding() async throws {
    let directory = TemporaryDirectory()
    let begins = DispatchSemaphore(value: 0)
    plainly {
      guard let database = try? Database.open(at: directory.path) else { return }
      database.reference().runTransactionBlock { data in
        begins.wait()
        data.value = 1
        return .success(withValue: data)
      }
    }
    begins.signal()
    // The directory is free again once the database has gone.
    var reopened: Database?
    while reopened == nil {
      do {
        reopened = try await Database.open(at: directory.path)
      } catch let error as DatabaseError where error.code == .locked {
        await Task.yield()
      }
    }
    #expect(try await reopened!.reference().int == 1)
    try await reopened!.close()
  }

  @Test("a blocked callback queue holds up no transaction")
  func blockedCallbacks() async throws {
    let database = Database.inMemory()
    let ref = database.reference().child("n")
    let goesOn = DispatchSemaphore(value: 0)
    plainly { ref.getData { _, _ in goesOn.wait() } }
    for _ in 0..<10 {
      try await ref.transaction { $0.value = ServerValue.increment(1) }
    }
    #expect(try await ref.int == 10)
    goesOn.signal()
  }

  // MARK: Many at once

  @Test("stars given and taken, and counted, by eight at once")
  func stars() async throws {
    let directory = TemporaryDirectory()
    let database = try await Database.open(
      at: directory.path, options: DatabaseOptions(durability: .onRequest))
    let post = database.reference().child("posts/p")
    try await post.setValue(["title": "Rings", "starCount": 0, "views": 0])
    try await withThrowingTaskGroup { group in
      for user in 0..<8 {
        group.addTask {
          // An odd number, so that each star is there in the end.
          for _ in 0...1_000 {
            try await post.runTransactionBlock { data in
              guard var post = data.value as? [String: AnyObject] else { return .abort() }
              var stars = post["stars"] as? [String: Bool] ?? [:]
              var starCount = post["starCount"] as? Int ?? 0
              if stars.removeValue(forKey: "user\(user)") != nil {
                starCount -= 1
              } else {
                starCount += 1
                stars["user\(user)"] = true
              }
              post["stars"] = stars as AnyObject?
              post["starCount"] = starCount as AnyObject?
              data.value = post
              return .success(withValue: data)
            }
            // A plain write, which conflicts with the others' transactions.
            try await post.child("views").setValue(ServerValue.increment(1))
          }
        }
      }
      try await group.waitForAll()
    }
    let stars = (0..<8).map { "user\($0):true" }.joined(separator: ",")
    let expected = "{starCount:8,stars:{\(stars)},title:\"Rings\",views:8008}"
    #expect(shown(try await post.getData().value) == expected)
    try await database.close()
    let reopened = try await Database.open(at: directory.path)
    #expect(
      shown(try await reopened.reference().child("posts/p").getData().value) == expected)
    try await reopened.close()
  }

  @Test("no sum is lost among transactions and plain writes at every height", arguments: 1...8)
  func sums(seed: Int) async throws {
    let database = Database.inMemory()
    let root = database.reference()
    let leaves = ["a/x/1", "a/x/2", "a/y", "b"]
    let writerCount = 4
    let count = 200
    let aborted = Shared(0)
    try await withThrowingTaskGroup { group in
      for writer in 0..<writerCount {
        group.addTask {
          var random = SeededGenerator(seed: UInt64(seed * 100 + writer))
          for _ in 0..<count {
            let leaf = leaves[Int(random.next() % UInt64(leaves.count))]
            let keys = leaf.split(separator: "/")
            let height = Int(random.next() % UInt64(keys.count + 1))
            let above = keys.prefix(height).joined(separator: "/")
            let below = keys.dropFirst(height).joined(separator: "/")
            let ref = above.isEmpty ? root : root.child(above)
            switch random.next() % 4 {
            case 0: try await root.child(leaf).setValue(ServerValue.increment(1))
            case 1: try await root.updateChildValues([leaf: ServerValue.increment(1)])
            default:
              let gives = random.next() % 8 > 0
              if !gives { aborted.withLock { $0 += 1 } }
              try await ref.runTransactionBlock { data in
                let sum = data.childData(byAppendingPath: below.isEmpty ? "/" : below)
                sum.value = (sum.value as? Int ?? 0) + 1
                return gives ? .success(withValue: data) : .abort()
              }
            }
          }
        }
      }
      try await group.waitForAll()
    }
    var sum = 0
    for leaf in leaves { sum += try await root.child(leaf).int ?? 0 }
    #expect(sum == writerCount * count - aborted.withLock { $0 }, "seed \(seed)")
  }
}
