import Dendro
import Foundation
import DendroTestSupport
import Testing

extension DatabaseTests {
  @Test("fire-and-forget errors go to the handler, on the callback queue")
  func errorHandler() async throws {
    let errors = Shared<[String]>([])
    var options = DatabaseOptions()
    options.errorHandler = { error in errors.withLock { $0.append(error.name) } }
    let database = Database.inMemory(options: options)
    let ref = database.reference()
    plainly {
      ref.setValue(Date())
      ref.child("").setValue(1)
      ref.updateChildValues(["a": 1, "a/b": 2])
      ref.child("none").setPriority(1)
      ref.child("#").observe(.value) { _ in }
      ref.child("#").observeSingleEvent(of: .value) { _ in }
      ref.setValue("fine")
    }
    await settle(database)
    #expect(
      errors.value == [
        "InvalidFirebaseData", "InvalidPathValidation", "InvalidFirebaseData", "NoData",
        "InvalidPathValidation", "InvalidPathValidation",
      ])
    try await database.close()
    plainly { ref.setValue(1) }
    await settle(database)
    #expect(errors.value.last == "DatabaseClosed")
  }

  @Test("a priority needs data")
  func priorityOfNothing() async throws {
    let database = Database.inMemory()
    let ref = database.reference().child("p")
    let error = await failure { try await ref.setPriority(1) }
    #expect(error?.code == .noData && error?.errorCode == 9999)
    let completion = await withCheckedContinuation { continuation in
      ref.setPriority(2) { error, _ in continuation.resume(returning: error) }
    }
    #expect((completion as? DatabaseError)?.code == .noData)
    #expect((completion! as NSError).code == 9999)
    #expect((completion! as NSError).domain == "com.firebase")
    #expect(completion!.localizedDescription.contains("/p"))
    try await ref.setValue(1)
    try await ref.setPriority(1)
    try await ref.setPriority(1)
    #expect(await failure { try await ref.setPriority(true) }?.code == .invalidData)
    try await ref.setPriority(nil)
    #expect(try await ref.getData().priority is NSNull)
  }

  @Test("limits of memory and of one write refuse with their own errors")
  func limits() async throws {
    var options = DatabaseOptions()
    options.writeByteLimit = 1000
    let small = try await Database.open(at: directory.path, options: options)
    try await small.reference().child("a").setValue("x")
    let error = await failure {
      try await small.reference().child("b").setValue(String(repeating: "y", count: 2000))
    }
    #expect(error?.code == .tooLarge)
    #expect(try await small.reference().child("b").getData().exists() == false)
    try await small.close()

    options = DatabaseOptions()
    options.memoryByteLimit = 100_000
    let tight = Database.inMemory(options: options)
    var refused: DatabaseError?
    for number in 0..<5_000 where refused == nil {
      refused = await failure {
        try await tight.reference().child("k\(number)").setValue(String(repeating: "z", count: 100))
      }
    }
    #expect(refused?.code == .memoryLimit)
    try await tight.reference().removeValue()
  }

  @Test("options that make no sense do no harm")
  func nonsense() async throws {
    var options = DatabaseOptions(durability: .interval(.zero))
    options.checkpointFactor = -.infinity
    options.writeByteLimit = .max
    options.memoryByteLimit = -1
    let database = try await Database.open(at: directory.path, options: options)
    var refused: DatabaseError?
    for number in 0..<5_000 where refused == nil {
      refused = await failure { try await database.reference().child("k\(number)").setValue(1) }
    }
    #expect(refused?.code == .memoryLimit)
    try await database.close()
  }

  @Test("a checkpoint that fails does no harm if the log may grow without end")
  func endlessLog() async throws {
    var options = DatabaseOptions()
    options.checkpointByteMin = .max
    let database = try await Database.open(at: directory.path, options: options)
    try await database.reference().child("a").setValue(1)
    let reader: Database = try await Database.open(readOnly: directory.path)
    for _ in 0..<2 {
      #expect(
        await failure { try await database.purgeHistory(waiting: .zero) }?.code == .locked)
      try await database.reference().child("a").setValue(2)
    }
    try await reader.close()
    try await database.purgeHistory()
    try await database.close()
  }

  @Test("listening deeper than data can be is refused with an error")
  func deepListeners() async throws {
    let database = Database.inMemory()
    func location(_ depth: Int) -> DatabaseReference {
      database.reference(withPath: Array(repeating: "a", count: depth).joined(separator: "/"))
    }
    for depth in [33, 200_000] {
      let cancelled = Shared<DatabaseError?>(nil)
      location(depth).observe(.value) { _ in
      } withCancel: { error in
        cancelled.withLock { $0 = error as? DatabaseError }
      }
      await settle(database)
      #expect(cancelled.value?.code == .invalidPath)
      let error = await failure { for try await _ in location(depth).snapshots { break } }
      #expect(error?.code == .invalidPath)
      #expect(error?.message.contains("32") == true)
      #expect(try await location(depth).getData().exists() == false)
    }
    let events = Shared(0)
    location(32).observe(.value) { _ in events.withLock { $0 += 1 } }
    try await location(32).setValue(1)
    try await database.reference().removeValue()
    await settle(database)
    #expect(events.value == 3)
    try await database.close()
  }
}
