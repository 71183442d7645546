import Dendro
import DendroEngine
import Dispatch
import Foundation
import Testing

extension TransactionTests {
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
    #expect(inputs.value.count == 2)
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
    #expect(runs.value == 1)
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
    #expect(runs.value == 2)
  }

  /// Writers wait as long as it takes, so that a test that depends on it cannot pass by chance.
  func patientDatabase() -> Database {
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
    try #require(runs.value == 4)
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
    options.reservationTimeout = .seconds(3)
    let database = Database.inMemory(options: options)
    let ref = database.reference().child("p")
    let runs = Shared<[Bool]>([])
    let error = await failure {
      try await ref.runTransactionBlock { data in
        let run = runs.value.count
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
    #expect(runs.value == 25)
    #expect(try await ref.int == 25)
    #expect(
      await ref.ending {
        .success(withValue: $0)
      } == "nil, true, 25")
  }
}
