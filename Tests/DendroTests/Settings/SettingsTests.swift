import Dendro
import Foundation
import Testing

@Suite("Settings as programs for Firebase make them")
struct SettingsTests {
  private let errors = Shared<[String]>([])

  private func inMemory() -> Database {
    var options = DatabaseOptions()
    options.errorHandler = { [errors] error in errors.withLock { $0.append(error.name) } }
    return Database.inMemory(options: options)
  }

  private func takeErrors(_ database: Database) async -> [String] {
    await withCheckedContinuation { continuation in
      database.callbackQueue.async { continuation.resume() }
    }
    await settle(database)
    return errors.withLock { names in
      defer { names = [] }
      return names
    }
  }

  @Test("whether the data survives is how the database was opened")
  func persistence() async throws {
    let database = inMemory()
    #expect(!database.isPersistenceEnabled)
    database.isPersistenceEnabled = false
    database.isPersistenceEnabled = true
    #expect(!database.isPersistenceEnabled)
    #expect(await takeErrors(database) == ["NSInvalidArgumentException"])
    let directory = TemporaryDirectory()
    let durable = try await Database.open(at: directory.path)
    #expect(durable.isPersistenceEnabled)
    durable.isPersistenceEnabled = true
    try await durable.close()
  }

  @Test("the size of a cache has a range, and no effect")
  func cacheSize() async throws {
    let database = inMemory()
    #expect(database.persistenceCacheSizeBytes == 10 << 20)
    for bad: UInt in [0, 1 << 20 - 1, 100 << 20 + 1, .max] {
      database.persistenceCacheSizeBytes = bad
    }
    #expect(database.persistenceCacheSizeBytes == 10 << 20)
    for good: UInt in [1 << 20, 100 << 20] {
      database.persistenceCacheSizeBytes = good
      #expect(database.persistenceCacheSizeBytes == good)
    }
    #expect(
      await takeErrors(database) == Array(repeating: "NSInvalidArgumentException", count: 4))
  }

  @Test("after the first use it is too late, whatever the value", arguments: 0..<5)
  func tooLate(use: Int) async throws {
    let database = inMemory()
    switch use {
    case 0: _ = database.reference()
    case 1: _ = database.reference(withPath: "a")
    case 2: _ = database.reference(fromURL: "dendro://localhost/a")
    case 3: database.purgeOutstandingWrites()
    default:
      database.goOffline()
      database.goOnline()
    }
    database.isPersistenceEnabled = false
    database.persistenceCacheSizeBytes = 2 << 20
    database.useEmulator(withHost: "localhost", port: 9000)
    #expect(database.persistenceCacheSizeBytes == 10 << 20)
    #expect(database.reference().url == "dendro://localhost")
    #expect(
      await takeErrors(database) == [
        "FIRDatabaseAlreadyInUse", "FIRDatabaseAlreadyInUse", "NSInternalInconsistencyException",
      ])
    // The queue may change at any time.
    let queue = DispatchQueue(label: "another")
    database.callbackQueue = queue
    #expect(database.callbackQueue === queue)
  }

  @Test("an emulator is a name for the references' URLs")
  func emulator() async throws {
    let database = inMemory()
    database.useEmulator(withHost: "", port: 9000)
    database.useEmulator(withHost: "a/b", port: 9000)
    database.useEmulator(withHost: "localhost", port: -1)
    database.useEmulator(withHost: "localhost", port: 65536)
    database.useEmulator(withHost: "LocalHost", port: 9000)
    let ref = database.reference().child("a b")
    #expect(ref.url == "http://localhost:9000/a%20b")
    #expect(database.reference(fromURL: "http://localhost:9000/a%20b") == ref)
    try await ref.setValue(1)
    #expect(
      await takeErrors(database) == Array(repeating: "NSInvalidArgumentException", count: 4))
    for host in ["::1", "[::1]"] {
      let other = inMemory()
      other.useEmulator(withHost: host, port: 9000)
      #expect(other.reference().url == "http://[::1]:9000")
      #expect(other.reference(fromURL: "http://[::1]:9000/a").key == "a")
    }
  }

  @Test("keeping synchronized is for everything but .info, and does nothing for references")
  func keepSynced() async throws {
    let database = inMemory()
    let ref = database.reference()
    ref.keepSynced(true)
    ref.child("a").keepSynced(false)
    database.reference(withPath: ".info/connected").keepSynced(true)
    ref.child("#").keepSynced(true)
    #expect(
      await takeErrors(database) == ["NSInvalidArgumentException", "InvalidPathValidation"])
    #expect(database.orderCache.orderCount == 0)
  }

  @Test("purging leaves every write")
  func purge() async throws {
    let directory = TemporaryDirectory()
    let database = try await Database.open(at: directory.path)
    let ref = database.reference()
    let results = Shared<[Bool]>([])
    plainly {
      for number in 0..<100 {
        ref.child("\(number)").setValue(number) { error, _ in
          results.withLock { $0.append(error == nil) }
        }
      }
      database.purgeOutstandingWrites()
    }
    try await database.close()
    await settle(database)
    #expect(results.value == Array(repeating: true, count: 100))
  }

  @Test(
    "with logging every database says on standard error what it does, a line each; without none does"
  )
  func logging() async {
    // In a process of its own, whose standard error is a file.
    await #expect(processExitsWith: .success) {
      let directory = TemporaryDirectory()
      let file = directory.path + ".log"
      defer { unlink(file) }
      let descriptor = open(file, O_CREAT | O_RDWR | O_APPEND | O_CLOEXEC, 0o600)
      #expect(descriptor >= 0 && dup2(descriptor, STDERR_FILENO) == STDERR_FILENO)
      func lines() -> [String] {
        let text = String(
          decoding: FileManager.default.contents(atPath: file) ?? Data(), as: UTF8.self)
        return text.split(separator: "\n").map(String.init)
      }
      let seen = Shared(0)
      var options = DatabaseOptions()
      // Called after the line, on the same queue.
      options.metrics = { metric in
        if metric.name == "dendro.checkpoint.seconds" { seen.withLock { $0 += 1 } }
      }
      let database = try await Database.open(at: directory.path, options: options)
      for round in 1...3 {
        Database.setLoggingEnabled(round == 2)
        try await database.reference().setValue(round)
        try await database.checkpoint()
        while seen.withLock({ $0 }) < round { await Task.yield() }
      }
      try await database.close()
      let received = lines().filter { $0.contains("checkpoint taken") }
      #expect(received.count == 1, "\(lines())")
      #expect(
        received.first?.wholeMatch(of: #/dendro: info: checkpoint taken bytes=\d+ lsn=2/#) != nil)
    }
  }

  @Test("the version is three numbers")
  func version() {
    #expect(Database.sdkVersion().wholeMatch(of: #/\d+\.\d+\.\d+/#) != nil)
    Database.setLoggingEnabled(false)
  }
}
