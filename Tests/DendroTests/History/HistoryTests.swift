import Dendro
import Foundation
import Testing

@Suite("History")
struct HistoryTests {
  private static func open(
    _ directory: TemporaryDirectory, _ history: DatabaseOptions.History = .all
  ) async throws -> Database {
    var options = DatabaseOptions()
    options.history = history
    return try await Database.open(at: directory.path, options: options)
  }

  /// The next writes, as text.
  private static func lines(_ count: Int, _ changes: DatabaseChanges) async throws -> [String] {
    var lines: [String] = []
    if count == 0 { return lines }
    for try await change in changes {
      lines.append("\(change.lsn) \(change.path) \(text(change.operation))")
      if lines.count == count { break }
    }
    return lines
  }

  private static func text(_ operation: DatabaseChange.Operation) -> String {
    switch operation {
    case .set(let data): "set \(shown(data.valueInExportFormat()))"
    case .remove: "remove"
    case .increment(let delta): "increment \(delta)"
    case .setPriority(let priority): "priority \(priority.map { "\($0)" } ?? "nil")"
    case .update(let entries):
      "update " + entries.map { "\($0.path): \(text($0.operation))" }.joined(separator: ", ")
    }
  }

  @Test("every kind of write shows as it was asked for, with its time")
  func operations() async throws {
    let directory = TemporaryDirectory()
    let database = try await Self.open(directory)
    let ref = database.reference()
    let begun = Date()
    try await ref.child("a").setValue(["b": 1, "c": 2.5] as [String: Any])
    try await ref.child("a/b").setValue(ServerValue.increment(1))
    try await ref.child("a/d").setValue(ServerValue.increment(0.5))
    try await ref.child("a").setPriority("p")
    try await ref.child("a").setPriority(nil)
    try await ref.updateChildValues(["a/c": NSNull(), "x/y": true, "a/b": ServerValue.increment(2)])
    try await ref.child("x").removeValue()
    // Changes nothing: no write.
    try await ref.child("x").removeValue()
    let lines = try await Self.lines(7, database.changes(since: 0))
    #expect(
      lines == [
        "1 /a set {b:1,c:2.5}", "2 /a/b increment integer(1)", "3 /a/d increment double(0.5)",
        #"4 /a priority string("p")"#, "5 /a priority nil",
        "6 / update /a/b: increment integer(2), /a/c: remove, /x/y: set true", "7 /x remove",
      ])
    let x = try await Self.lines(2, ref.child("x").changes(since: 0))
    #expect(x.map { $0.prefix(1) } == ["6", "7"])
    let deep = try await Self.lines(3, ref.child("a/b").changes(since: 1))
    #expect(deep.map { $0.prefix(1) } == ["2", "4", "5"])
    var previous = begun - 0.001
    for try await change in database.changes(since: 0) {
      #expect(change.time >= previous && change.time <= Date() + 0.001)
      previous = change.time
      // At the reported time of a write, that write was there.
      let state = try await ref.snapshot(at: change.time)
      let later = try await ref.snapshot(at: change.lsn)
      if change.lsn == 7 {
        #expect(shown(state.value) == shown(later.value))
        break
      }
    }
    try await database.close()
  }

  @Test("a location as it was after each write, and at each time")
  func snapshots() async throws {
    let directory = TemporaryDirectory()
    var database = try await Self.open(directory)
    let numbers = 1...60
    for number in numbers {
      try await database.reference(withPath: "n").setValue(number)
      if number % 20 == 0 { try await database.checkpoint() }
      if number == 30 {
        try await database.close()
        database = try await Self.open(directory)
      }
    }
    let ref = database.reference(withPath: "n")
    let range = try await database.historyRange()
    #expect(range.oldest == 0 && range.newest == 60 && range.oldestTime == nil)
    #expect(try await !ref.snapshot(at: 0).exists())
    for number in numbers {
      let snapshot = try await ref.snapshot(at: Database.LSN(number))
      #expect(snapshot.int == number && snapshot.ref == ref)
    }
    #expect(try await ref.snapshot(at: Date.distantFuture).int == 60)
    #expect(try await !ref.snapshot(at: Date.distantPast).exists())
    #expect(try await ref.snapshot(at: #require(range.newestTime)).int == 60)
    let none = await failure { _ = try await ref.snapshot(at: 61) }
    #expect(none?.code == .outOfHistory)
    #expect(none?.historyRange == range)
    #expect(none?.message.contains("write 61 is outside") == true, "\(none as Any)")
    let nan = await failure { _ = try await ref.snapshot(at: Date(timeIntervalSince1970: .nan)) }
    #expect(nan?.code == .invalidArgument)
    let bad = await failure {
      _ = try await database.reference(withPath: "a.b").snapshot(at: range.newest)
    }
    #expect(bad?.code == .invalidPath)
    try await database.close()
    let closed = await failure { _ = try await ref.snapshot(at: 60) }
    #expect(closed?.code == .closed)

    let reader: Database = try await Database.open(readOnly: directory.path)
    #expect(try await reader.reference(withPath: "n").snapshot(at: 33).int == 33)
    var count = 0
    for try await _ in reader.changes(since: 10) { count += 1 }
    #expect(count == 50)
    try await reader.close()
  }

  @Test("a query shows of the past what it would have shown then")
  func query() async throws {
    let directory = TemporaryDirectory()
    let database = try await Self.open(directory)
    let ref = database.reference(withPath: "list")
    for number in 1...20 {
      try await ref.child("k\(number)").setValue((number * 7) % 20)
    }
    let query = ref.queryOrderedByValue().queryLimited(toLast: 3)
    let then = try await query.snapshot(at: 10)
    #expect(then.map { $0.int ?? -1 } == [14, 15, 16])
    #expect(try await query.getData().map { $0.int ?? -1 } == [17, 18, 19])
    try await database.close()
  }

  @Test("without the option little is kept, and what is not is refused with the range")
  func none() async throws {
    let directory = TemporaryDirectory()
    let database = try await Self.open(directory, .minimal)
    for number in 1...30 {
      try await database.reference(withPath: "n").setValue(number)
      if number % 10 == 0 { try await database.checkpoint() }
    }
    let range = try await database.historyRange()
    #expect(range.oldest == 20 && range.newest == 30)
    #expect(range.contains(20) && !range.contains(19))
    let early = await failure {
      for try await _ in database.changes(since: 3) {}
    }
    #expect(early?.code == .outOfHistory && early?.historyRange == range)
    let time = await failure {
      _ = try await database.reference().snapshot(at: Date(timeIntervalSince1970: 0.5))
    }
    #expect(time?.code == .outOfHistory)
    #expect(time?.message.contains("1970-01-01T00:00:00.500") == true, "\(time as Any)")
    try await database.close()
  }

  @Test(
    "times without a calendar date are shown as numbers",
    arguments: [
      (-.infinity, "-9.223372036854776e+15 seconds"), (-1e300, "-9.223372036854776e+15 seconds"),
      (-1e13, "-10000000000000.0 seconds"), (-62_167_392_000, "0000-01-01T00:00:00.000"),
    ] as [(Double, String)])
  func absurdTimes(_ seconds: Double, _ text: String) async throws {
    let directory = TemporaryDirectory()
    let database = try await Self.open(directory, .minimal)
    for _ in 1...3 {
      try await database.reference().setValue(ServerValue.increment(1))
      try await database.checkpoint()
    }
    let error = await failure {
      _ = try await database.reference().snapshot(at: Date(timeIntervalSince1970: seconds))
    }
    #expect(error?.code == .outOfHistory)
    #expect(error?.message.contains("the time \(text)") == true, "\(error as Any)")
    for late in [Double.infinity, 1e300, 1e13] {
      #expect(
        try await database.reference().snapshot(at: Date(timeIntervalSince1970: late)).int == 3)
    }
    try await database.close()
  }

  @Test("a follower gets each write as it becomes durable, and ends with the database")
  func following() async throws {
    let directory = TemporaryDirectory()
    let database = try await Self.open(directory)
    let follower = Task {
      var numbers: [Database.LSN] = []
      for try await change in database.changes(since: 0) { numbers.append(change.lsn) }
      return numbers
    }
    let limited = Task { try await Self.lines(200, database.changes(since: 0)).count }
    try await withThrowingTaskGroup(of: Void.self) { group in
      for writer in 0..<4 {
        group.addTask {
          for number in 1...50 {
            try await database.reference(withPath: "\(writer)/\(number)").setValue(number)
          }
        }
      }
      try await group.waitForAll()
    }
    #expect(try await limited.value == 200)
    try await database.close()
    let numbers = try await follower.value
    let all: [Database.LSN] = (1...200).map { Database.LSN($0) }
    #expect(numbers == Array(all.prefix(numbers.count)))
    let late = await failure { for try await _ in database.changes(since: 0) {} }
    #expect(late?.code == .closed)
  }

  @Test("a cancelled follower ends")
  func cancelling() async throws {
    let directory = TemporaryDirectory()
    let database = try await Self.open(directory)
    try await database.reference(withPath: "a").setValue(1)
    let follower = Task {
      for try await _ in database.changes(since: 0) {}
      return Task.isCancelled
    }
    follower.cancel()
    #expect(try await follower.value)
    let reading = Task { try await database.reference().snapshot(at: 0).exists() }
    reading.cancel()
    switch await reading.result {
    case .success(let exists): #expect(!exists)
    case .failure(let error): #expect(error is CancellationError)
    }
    try await database.close()
  }

  @Test("in memory there is the present only")
  func inMemory() async throws {
    let database = Database.inMemory()
    try await database.reference(withPath: "a").setValue(1)
    #expect(try await database.reference(withPath: "a").snapshot(at: 1).int == 1)
    #expect(try await database.historyRange().oldest == 1)
    let error = await failure { _ = try await database.reference().snapshot(at: 0) }
    #expect(error?.code == .outOfHistory)
    let changes = await failure { for try await _ in database.changes(since: 0) {} }
    #expect(changes?.code == .unavailable)
    try await database.purgeHistory()
  }

  @Test("options that make no sense are refused")
  func nonsense() async throws {
    let directory = TemporaryDirectory()
    for history in [
      .keep(for: .seconds(-1)), .keep(writes: -1), .keep(byteCount: -5),
    ] as [DatabaseOptions.History] {
      let error = await failure { _ = try await Self.open(directory, history) }
      #expect(error?.code == .invalidArgument)
      #expect(error?.message.contains("negative") == true)
    }
    #expect(!FileManager.default.fileExists(atPath: directory.path))
    for history in [
      .keep(for: .seconds(Int64.max)), .keep(for: .zero), .keep(for: .nanoseconds(1)),
      .keep(writes: 0), .keep(writes: .max), .keep(byteCount: .max),
    ] as [DatabaseOptions.History] {
      let database = try await Self.open(directory, history)
      for number in 0..<3 {
        try await database.reference(withPath: "a").setValue("\(history) \(number)")
        try await database.checkpoint()
      }
      _ = try await database.reference().snapshot(at: database.historyRange().oldest)
      try await database.close()
    }
  }

  @Test("purged, the files hold nothing of what was removed; readers keep it from happening")
  func purging() async throws {
    let directory = TemporaryDirectory()
    let database = try await Self.open(directory)
    let secret = UUID().uuidString
    try await database.reference(withPath: "secret").setValue(secret)
    try await database.reference(withPath: "other").setValue("stays")
    try await database.checkpoint()
    try await database.reference(withPath: "secret").removeValue()
    func isThere() throws -> Bool {
      try FileManager.default.contentsOfDirectory(atPath: directory.path).contains { name in
        let data = FileManager.default.contents(atPath: "\(directory.path)/\(name)") ?? Data()
        return data.range(of: Data(secret.utf8)) != nil
      }
    }
    #expect(try isThere())
    let reader: Database = try await Database.open(readOnly: directory.path)
    let refused = await failure { try await database.purgeHistory(waiting: .zero) }
    #expect(refused?.code == .locked)
    #expect(try await reader.reference(withPath: "secret").snapshot(at: 1).string == secret)
    try await reader.close()
    try await database.purgeHistory()
    #expect(try !isThere())
    #expect(try await database.historyRange().oldest == 3)
    try await database.close()
    let again = try await Self.open(directory)
    #expect(try await again.reference(withPath: "other").getData().string == "stays")
    try await again.close()
  }
}
