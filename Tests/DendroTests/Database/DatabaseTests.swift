import Dendro
import Foundation
import DendroTestSupport
import Testing

@Suite("Opening, closing, durability")
struct DatabaseTests {
  let directory = TemporaryDirectory()

  @Test(
    "what was acknowledged is there after reopening",
    arguments: [
      Database.Durability.everyCommit, .interval(.milliseconds(5)), .onRequest,
    ])
  func reopening(durability: Database.Durability) async throws {
    let options = DatabaseOptions(durability: durability)
    do {
      let database = try await Database.open(at: directory.path, options: options)
      #expect(database.recoveryReport.created)
      let ref = database.reference()
      try await ref.setValue(["a": 1, "b": ["c": true], ".priority": "p"] as [String: Any])
      try await ref.child("n").setValue(ServerValue.increment(5))
      try await ref.updateChildValues(["x/y": 1.5, "a": NSNull()])
      try await database.synchronize()
      #expect(database.statistics.lastWrite == 3)
      #expect(database.statistics.lastDurableWrite == 3)
      try await database.close()
    }
    for round in 1...2 {
      let database = try await Database.open(at: directory.path, options: options)
      #expect(database.recoveryReport.lastWrite == 3)
      #expect(database.recoveryReport.tornTail == nil)
      #expect(database.recoveryReport.checkpointedWrite == (round == 2 ? 3 : nil))
      #expect(
        shown(try await database.reference().getData().valueInExportFormat())
          == #"{.priority:"p",b:{c:true},n:5,x:{y:1.5}}"#)
      try await database.checkpoint()
      try await database.close()
    }
  }

  @Test("going without close loses nothing that was acknowledged")
  func deinitialized() async throws {
    for number in 1...5 {
      let value = try await {
        let database = try await openOnceFree()
        let before = try await database.reference().getData().int
        try await database.reference().setValue(number)
        return before
      }()
      #expect(value == (number == 1 ? nil : number - 1))
    }
  }

  /// The directory is unlocked soon after the release of the last reference, on a thread of the engine's.
  private func openOnceFree() async throws -> Database {
    while true {
      do {
        return try await Database.open(at: directory.path)
      } catch let error as DatabaseError where error.code == .locked {
        await Task.yield()
      }
    }
  }

  @Test("the same directory twice is refused, with the holder's process id")
  func locked() async throws {
    let database = try await Database.open(at: directory.path)
    let error = await failure { _ = try await Database.open(at: directory.path) }
    #expect(error?.code == .locked)
    #expect(error?.name == "DatabaseLocked")
    #expect(error?.processIdentifier == ProcessInfo.processInfo.processIdentifier)
    #expect(error?.file != nil)
    #expect(error?.message.contains("is already open in this process") == true)
    try await database.close()
    try await Database.open(at: directory.path).close()
  }

  @Test("a directory that is held is waited for, up to a time, or until the task is cancelled")
  func waiting() async throws {
    let path = directory.path
    let database = try await Database.open(at: path)
    try await database.reference().setValue(1)
    let error = await failure { _ = try await Database.open(at: path, waitingFor: .zero) }
    #expect(error?.code == .locked)
    let cancelled = Task { try await Database.open(at: path, waitingFor: .seconds(600)).close() }
    cancelled.cancel()
    await #expect(throws: CancellationError.self) { try await cancelled.value }
    let next = Task { try await Database.open(at: path, waitingFor: .seconds(600)) }
    await Task.yield()
    try await database.close()
    let opened = try await next.value
    #expect(try await opened.reference().getData().int == 1)
    try await opened.close()
  }

  @Test("what is not there is not made if that is not wanted")
  func missing() async throws {
    var options = DatabaseOptions()
    options.createsMissing = false
    #expect(
      await failure { _ = try await Database.open(at: directory.path, options: options) }?.code
        == .notFound)
    #expect(
      await failure { _ = try await Database.open(readOnly: directory.path) }?.code == .notFound)
    #expect(!FileManager.default.fileExists(atPath: directory.path))
    let file = directory.path
    #expect(FileManager.default.createFile(atPath: file, contents: Data("x".utf8)))
    #expect(await failure { _ = try await Database.open(at: file) } != nil)
    #expect(await failure { _ = try await Database.open(at: file + "/below") } != nil)
    #expect(await failure { _ = try await Database.open(at: "") } != nil)
    #expect(await failure { _ = try await Database.open(at: "/proc/none/below") } != nil)
    #expect(await failure { _ = try await Database.open(at: "a\u{0}b") } != nil)
  }

  @Test("opened for reading beside a writer")
  func readOnly() async throws {
    let writer = try await Database.open(at: directory.path)
    try await writer.reference().setValue(["a": 1])
    let reader = try await Database.open(readOnly: directory.path)
    #expect(shown(try await reader.reference().getData().value) == "{a:1}")
    let recorder = Recorder(reader)
    recorder.listen("", reader.reference(), [.value])
    #expect(await recorder.take() == ["value {a:1}"])
    #expect(await failure { try await reader.reference().setValue(2) }?.code == .readOnly)
    #expect(await failure { try await reader.checkpoint() }?.code == .readOnly)
    try await reader.close()
    try await writer.close()
  }

  @Test("a backup of a live database opens like any other")
  func backup() async throws {
    let copy = TemporaryDirectory()
    let database = try await Database.open(at: directory.path)
    try await database.reference().setValue(["a": 1])
    try await database.backup(to: copy.path)
    try await database.reference().setValue(["a": 2])
    #expect(await failure { try await database.backup(to: copy.path) } != nil)
    let opened = try await Database.open(at: copy.path)
    #expect(shown(try await opened.reference().getData().value) == "{a:1}")
    try await opened.close()
    try await database.close()
    #expect(await failure { try await Database.inMemory().backup(to: copy.path + "2") } != nil)
  }

  @Test(
    "after close: every call gets the error, queued events are delivered, listeners are cancelled",
    arguments: [true, false])
  func closed(inMemory: Bool) async throws {
    let database = inMemory ? Database.inMemory() : try await Database.open(at: directory.path)
    let recorder = Recorder(database)
    let ref = database.reference()
    recorder.listen("", ref, [.value])
    ref.observe(
      .childAdded, with: { _ in },
      withCancel: { error in
        recorder.note("cancelled \((error as? DatabaseError)?.name ?? "")")
      })
    ref.setValue(1) { error, _ in recorder.note("done \(error == nil)") }
    try await database.close()
    try await database.close()
    try plainly { try database.close() }
    let lines = await recorder.take()
    #expect(lines == ["value null", "value 1", "done true", "cancelled DatabaseClosed"])

    #expect(await failure { try await ref.setValue(1) }?.code == .closed)
    #expect(await failure { _ = try await ref.getData() }?.code == .closed)
    #expect(await failure { try await database.synchronize() }?.code == .closed)
    #expect(await failure { try await database.checkpoint() }?.code == .closed)
    ref.setValue(2) { error, _ in recorder.note("\((error as? DatabaseError)?.name ?? "")") }
    ref.observe(
      .value, with: { _ in recorder.note("event") },
      withCancel: { error in
        recorder.note("refused \((error as? DatabaseError)?.name ?? "")")
      })
    #expect(await recorder.take() == ["DatabaseClosed", "refused DatabaseClosed"])
    let (nothing, _) = await ref.observeSingleEventAndPreviousSiblingKey(of: .value)
    #expect(!nothing.exists())
    ref.removeAllObservers()
  }

  @Test("a waiting single event ends with the database")
  func waitingEnds() async throws {
    let database = Database.inMemory()
    async let waited = database.reference().observeSingleEventAndPreviousSiblingKey(of: .childAdded)
    await settle(database)
    try await database.close()
    #expect(await !waited.0.exists())
  }

  @Test("a listener keeps its database, and lets it go when it is removed")
  func listenersHold() async throws {
    weak var weakly: Database?
    var handle: DatabaseHandle = 0
    let seen = Shared<[Int]>([])
    do {
      let database = Database.inMemory()
      weakly = database
      handle = database.reference().observe(.value) { snapshot in
        seen.withLock { $0.append(snapshot.int ?? 0) }
      }
    }
    do {
      let database = try #require(weakly)
      try await database.reference().setValue(7)
      await settle(database)
      #expect(seen.value.last == 7)
      database.reference().removeObserver(withHandle: handle)
      await settle(database)
    }
    // The callback queue releases its references with its last block.
    while weakly != nil { await Task.yield() }
  }

  @Test("a reader that keeps files from being removed is reported in the log")
  func readersKeepFiles() async throws {
    let lines = Shared<[String]>([])
    var options = DatabaseOptions()
    options.logging = { line in lines.withLock { $0.append(line.message) } }
    let database = try await Database.open(at: directory.path, options: options)
    let reader: Database = try await Database.open(readOnly: directory.path)
    func isReported() -> Bool {
      lines.withLock { $0.contains { $0.contains("a reader keeps files") } }
    }
    for number in 0..<4 {
      #expect(number > 1 || !isReported())
      try await database.reference().child("a").setValue(number)
      try await database.checkpoint()
    }
    try await database.close()
    #expect(isReported())
    try await reader.close()
  }

  @Test("opening reports its progress, and logs")
  func progress() async throws {
    let steps = Shared<[Database.OpeningProgress]>([])
    // Letters without a pattern, so that the files are as large.
    func noise(_ seed: UInt64) -> String { noiseText(1_500_000, seed: seed) }
    do {
      let database = try await Database.open(at: directory.path)
      try await database.reference().child("a").setValue(noise(1))
      try await database.reference().child("b").setValue(noise(2))
      try await database.checkpoint()
      try await database.reference().child("c").setValue(noise(3))
      try await database.reference().child("d").setValue(noise(4))
      try await database.close()
    }
    var options = DatabaseOptions()
    options.progress = { step in steps.withLock { $0.append(step) } }
    options.loading = .whole
    options.logging = { _ in }
    options.metrics = { _ in }
    let database = try await Database.open(at: directory.path, options: options)
    #expect(database.recoveryReport.replayedWriteCount == 2)
    try await database.close()
    let received = steps.value
    let log = received.drop { $0.phase == .checkpoint }
    #expect(log.startIndex > 0 && !log.isEmpty, "\(received)")
    for steps in [received[..<log.startIndex], log] {
      #expect(steps.allSatisfy { $0.phase == steps.first?.phase }, "\(received)")
      #expect(steps.allSatisfy { $0.totalByteCount > 1 << 20 }, "\(received)")
      #expect(steps.allSatisfy { $0.completedByteCount <= $0.totalByteCount }, "\(received)")
      #expect(
        zip(steps, steps.dropFirst()).allSatisfy { $0.completedByteCount <= $1.completedByteCount },
        "\(received)")
    }
  }

  @Test("errors describe themselves")
  func errors() async {
    let error = await failure { try await Database.inMemory().reference().setValue(["a$": 1]) }
    let described = String(describing: error!)
    #expect(described.hasPrefix("InvalidFirebaseData: "))
    #expect(error?.localizedDescription == error?.message)
    #expect(error == error)
  }
}
