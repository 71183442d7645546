import Dendro
import DendroStorage
import DendroTesting
import Foundation
import Testing

/// Failures, with the name and number of their errors. The names above the gap are those of
/// the exceptions that Firebase raises.
@Suite("Errors by name")
struct ErrorTableTests {
  struct Row: Sendable, CustomTestStringConvertible {
    let name: String
    let code: DatabaseError.Code
    let cause: String
    /// Throws the error, or has it passed to the error handler.
    let body: @Sendable (Database) async throws -> Void

    init(
      _ name: String, _ code: DatabaseError.Code, _ cause: String,
      _ body: @escaping @Sendable (Database) async throws -> Void
    ) {
      (self.name, self.code, self.cause, self.body) = (name, code, cause, body)
    }

    var testDescription: String { "\(name): \(cause)" }
  }

  private static func data(_ cause: String, _ value: @escaping @Sendable () -> Any) -> Row {
    Row("InvalidFirebaseData", .invalidData, cause) {
      try await $0.reference().child("p").setValue(value())
    }
  }

  private static func update(_ cause: String, _ values: @escaping @Sendable () -> [String: Any])
    -> Row
  {
    Row("InvalidFirebaseData", .invalidData, cause) {
      try await $0.reference().updateChildValues(values())
    }
  }

  private static func query(
    _ cause: String, _ query: @escaping @Sendable (DatabaseReference) -> DatabaseQuery
  ) -> Row {
    Row("InvalidQueryParameter", .invalidQuery, cause) {
      _ = try await query($0.reference()).getData()
    }
  }

  private static func info(
    _ cause: String, _ write: @escaping @Sendable (DatabaseReference) async throws -> Void
  ) -> Row {
    Row("WritablePathValidation", .notWritable, cause + " below .info") {
      try await write($0.reference(withPath: ".info/connected"))
    }
  }

  static let refusedData = [
    data("a type that cannot be stored") { Date() },
    data("NaN") { Double.nan },
    data("an infinity") { Double.infinity },
    data("a string over 10 MiB") { String(repeating: "s", count: 10 * 1024 * 1024 + 1) },
    data("a dictionary's key that is no string") { [1: "x"] as [AnyHashable: Any] },
    data("a bad key in the data") { ["a": ["b.c": 1]] },
    data("a bad priority") { [".value": 1, ".priority": true] },
    data("more keys beside .sv") { [".sv": "timestamp", "x": 1] },
    data("a server value of no kind") { [".sv": "now"] },
    data("more than 32 levels") { (0..<32).reduce(1 as Any) { value, _ in ["a": value] } },
    update("a bad path of an update") { ["a.b": 1] },
    update("paths of an update that contradict each other") { ["a": 1, "a/b": 2] },
    Row("InvalidLeafValueType", .invalidLeafValueType, ".value with a dictionary") {
      try await $0.reference().setValue([".value": ["a": 1]])
    },
    Row("InvalidLeafValueType", .invalidLeafValueType, ".value with an array") {
      try await $0.reference().setValue([".value": [1]])
    },
  ]

  static let refusedPlaces = [
    Row("InvalidPathValidation", .invalidPath, "an empty path") {
      _ = try await $0.reference().child("").getData()
    },
    Row("InvalidPathValidation", .invalidPath, "a forbidden character in a path") {
      try await $0.reference(withPath: "a/b#c").setValue(1)
    },
    Row("InvalidPathValidation", .invalidPath, "a bad path to order by") {
      _ = try await $0.reference().queryOrdered(byChild: "a.b").getData()
    },
    Row("InvalidKeyValidation", .invalidKey, "a bad childKey") {
      _ = try await $0.reference().queryStarting(atValue: 1, childKey: "a/b").getData()
    },
    info("setValue") { try await $0.setValue(1) },
    info("updateChildValues") { try await $0.updateChildValues(["a": 1]) },
    info("removeValue") { try await $0.removeValue() },
    info("setPriority") { try await $0.setPriority(1) },
    info("a transaction") { _ = try await $0.runTransactionBlock { .success(withValue: $0) } },
    info("childByAutoId") { try await $0.childByAutoId().setValue(1) },
    info("onDisconnectSetValue") { try await $0.onDisconnectSetValue(1) },
    info("cancelDisconnectOperations") { try await $0.cancelDisconnectOperations() },
    query("a limit of 0") { $0.queryLimited(toFirst: 0) },
    query("two orders") { $0.queryOrderedByKey().queryOrderedByValue() },
    query("a bound by key that is no string") { $0.queryOrderedByKey().queryEqual(toValue: 1) },
    query("an order by the child $key") { $0.queryOrdered(byChild: "$key") },
    Row("InvalidDatabaseURL", .invalidURL, "a URL of another host") {
      _ = try await $0.reference(fromURL: "https://elsewhere.example.org/a").getData()
    },
    Row("InvalidDatabaseURL", .invalidURL, "a database's URL with a path") { _ in
      _ = try await Database.database(url: "https://a.example.org/path").reference().getData()
    },
  ]

  private static func used(
    _ name: String, _ cause: String, _ set: @escaping @Sendable (Database) -> Void
  ) -> Row {
    Row(name, .alreadyInUse, cause + " after the first use") { database in
      _ = database.reference()
      set(database)
    }
  }

  static let refusedSettings = [
    used("FIRDatabaseAlreadyInUse", "isPersistenceEnabled") { $0.isPersistenceEnabled = false },
    used("FIRDatabaseAlreadyInUse", "persistenceCacheSizeBytes") {
      $0.persistenceCacheSizeBytes = 2 << 20
    },
    used("NSInternalInconsistencyException", "useEmulator") {
      $0.useEmulator(withHost: "localhost", port: 9000)
    },
    Row("NSInvalidArgumentException", .invalidArgument, "a cache below 1 MiB") {
      $0.persistenceCacheSizeBytes = 1 << 20 - 1
    },
    Row("NSInvalidArgumentException", .invalidArgument, "a cache above 100 MiB") {
      $0.persistenceCacheSizeBytes = 100 << 20 + 1
    },
    Row("NSInvalidArgumentException", .invalidArgument, "persistence of what is in memory") {
      $0.isPersistenceEnabled = true
    },
    Row("NSInvalidArgumentException", .invalidArgument, "an emulator without a host") {
      $0.useEmulator(withHost: "", port: 9000)
    },
    Row("NSInvalidArgumentException", .invalidArgument, "keepSynced below .info") {
      $0.reference(withPath: ".info").keepSynced(true)
    },
    Row("InvalidArgumentError", .invalidArgument, "a directory without a name") { _ in
      _ = try await Database.open(at: "")
    },
    Row("InvalidArgumentError", .invalidArgument, "a time that is no number") {
      _ = try await $0.reference().snapshot(at: Date(timeIntervalSinceReferenceDate: .nan))
    },
  ]

  /// Errors of Firebase's server, or of neither.
  static let others = [
    Row("NoData", .noData, "a priority where there are no data") {
      try await $0.reference().child("none").setPriority(1)
    },
    Row("maxretry", .maxRetry, "a transaction that is overtaken 25 times") { _ in
      var options = DatabaseOptions()
      options.reservationTimeout = .milliseconds(1)
      let database = Database.inMemory(options: options)
      let ref = database.reference()
      _ = try await ref.runTransactionBlock { data in
        let done = DispatchSemaphore(value: 0)
        Thread.detachNewThread {
          ref.setValue(ServerValue.increment(1))
          done.signal()
        }
        done.wait()
        return .success(withValue: data)
      }
    },
    Row("DatabaseClosed", .closed, "anything after closing") { database in
      try await database.close()
      _ = try await database.reference().getData()
    },
    Row("DatabaseNotFound", .notFound, "opening for reading what is not there") { _ in
      _ = try await Database.open(readOnly: "/nonexistent/database")
    },
    Row("DatabaseLocked", .locked, "opening a directory twice") { _ in
      let directory = TemporaryDirectory()
      let first = try await Database.open(at: directory.path)
      defer { _ = try? plainly { try first.close() } }
      _ = try await Database.open(at: directory.path)
    },
    Row("ArchiveBehind", .locked, "purging what an open archive has not copied") { _ in
      let (directory, place) = (TemporaryDirectory(), TemporaryDirectory())
      let database = try await Database.open(at: directory.path)
      defer { _ = try? plainly { try database.close() } }
      try await database.reference().setValue(1)
      let archive = try DatabaseArchive(of: directory.path, at: place.path)
      defer { archive.close() }
      try await archive.extend()
      try await database.reference().setValue(2)
      try await database.purgeHistory(waiting: .zero)
    },
    Row("DatabaseReadOnly", .readOnly, "writing if it was opened for reading") { _ in
      let directory = TemporaryDirectory()
      try await Database.open(at: directory.path).close()
      let reader = try await Database.open(readOnly: directory.path)
      defer { _ = try? plainly { try reader.close() } }
      try await reader.reference().setValue(1)
    },
    Row("InputOutput", .inputOutput, "a directory that cannot be made") { _ in
      _ = try await Database.open(at: "/proc/none/database")
    },
    Row("WriteTooLarge", .tooLarge, "a write over writeByteLimit") { _ in
      var options = DatabaseOptions()
      options.writeByteLimit = 1000
      let ref = Database.inMemory(options: options).reference()
      try await ref.setValue(String(repeating: "x", count: 2000))
    },
    Row("MemoryLimit", .memoryLimit, "a tree over memoryByteLimit") { _ in
      var options = DatabaseOptions()
      options.memoryByteLimit = 0
      let ref = Database.inMemory(options: options).reference()
      for number in 0..<5_000 { try await ref.child("\(number)").setValue("text") }
    },
    Row("OutOfHistory", .outOfHistory, "a state that is not kept") { database in
      try await database.reference().setValue(1)
      try await database.reference().setValue(2)
      _ = try await database.reference().snapshot(at: 1)
    },
    Row("HistoryUnavailable", .unavailable, "following what has no log") { database in
      for try await _ in database.changes(since: 0) {}
    },
    // Of a disk that refuses: RefusingDiskTests, and TransactionTests/withinLimits of what waits too long.
  ]

  @Test(
    "each has its name, its number, one sentence, and leaves everything as it was",
    arguments: refusedData + refusedPlaces + refusedSettings + others)
  func table(_ row: Row) async throws {
    let received = Shared<[DatabaseError]>([])
    var options = DatabaseOptions()
    options.errorHandler = { error in received.withLock { $0.append(error) } }
    let database = Database.inMemory(options: options)
    var error = await failure { try await row.body(database) }
    if error == nil {
      await settle(database)
      error = received.value.first
    }
    let found = try #require(error)
    #expect(found.name == row.name)
    #expect(found.code == row.code)
    let bridged = found as NSError
    #expect(bridged.domain == "com.firebase" && bridged.code == found.errorCode)
    // Firebase has one number for these two.
    #expect(found.errorCode == (row.code == .noData ? 9999 : row.code.rawValue))
    #expect(bridged.localizedDescription == found.message && !found.message.isEmpty)
    #expect(found.message.utf8.count < 400 && !found.message.contains("\n"))
    #expect(found.description == "\(found.name): \(found.message)")
    if row.code != .closed, row.code != .outOfHistory {
      #expect(try await !database.reference().getData().exists())
    }
  }

  @Test("each kind has a number of its own")
  func numbers() {
    let codes: [DatabaseError.Code] = [
      .unavailable, .invalidData, .invalidLeafValueType, .invalidPath, .invalidKey, .notWritable,
      .invalidQuery, .invalidArgument, .alreadyInUse, .invalidURL, .closed, .locked, .readOnly,
      .notFound, .corrupt, .unsupportedFormat, .inputOutput, .diskFull, .poisoned, .memoryLimit,
      .tooLarge, .ownershipLost, .outOfHistory, .noData, .maxRetry,
    ]
    #expect(Set(codes.map(\.rawValue)).count == codes.count)
    #expect(DatabaseError.Code.unavailable.rawValue == 2)
    #expect(DatabaseError.Code.maxRetry.rawValue == 9999)
    // Firebase's for a permission and for purged writes, which do not occur here.
    #expect(!codes.contains { [1, 3].contains($0.rawValue) })
  }
}
