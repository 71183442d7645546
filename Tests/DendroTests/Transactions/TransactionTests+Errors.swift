import Dendro
import DendroEngine
import DendroStorage
import DendroTestSupport
import DendroTesting
import Testing

extension TransactionTests {
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
    #expect(handled.value == ["InvalidPathValidation"])

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
      #expect(!ran.value)
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
}
