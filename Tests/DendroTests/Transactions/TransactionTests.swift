import Dendro
import DendroTestSupport
import Foundation
import Testing

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

  @Test("many without a completion all run")
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
}
