import Dendro
import DendroEngine
import DendroStorage
import DendroTesting
import Foundation
import Testing

/// One after the other: some of these take every database of the process offline.
@Suite("Offline and online", .serialized)
struct ConnectionTests {
  let database = Database.inMemory()
  var root: DatabaseReference { database.reference() }

  enum Operation: Sendable, CustomStringConvertible {
    case set(String, @Sendable () -> Any?)
    case setWithPriority(String, @Sendable () -> Any?, Int)
    case remove(String)
    case update(String, @Sendable () -> [AnyHashable: Any])
    case cancel(String)

    var description: String {
      switch self {
      case .set(let path, let value): "set \(path) \(shown(value()))"
      case .setWithPriority(let path, let value, let priority):
        "set \(path) \(shown(value())) !\(priority)"
      case .remove(let path): "remove \(path)"
      case .update(let path, let values): "update \(path) \(shown(values()))"
      case .cancel(let path): "cancel \(path)"
      }
    }

    func register(at root: DatabaseReference) async throws {
      switch self {
      case .set(let path, let value):
        let ref = try await root.child(path).onDisconnectSetValue(value())
        #expect(ref == root.child(path))
      case .setWithPriority(let path, let value, let priority):
        try await root.child(path).onDisconnectSetValue(value(), andPriority: priority)
      case .remove(let path): try await root.child(path).onDisconnectRemoveValue()
      case .update(let path, let values):
        try await root.child(path).onDisconnectUpdateChildValues(values())
      case .cancel(let path): try await root.child(path).cancelDisconnectOperations()
      }
    }
  }

  static let before = "{a:{b:1,c:2,d:{e:3}},n:110}"

  static let rows: [([Operation], String)] = [
    ([], before),
    ([.set("x", { 1 })], "{a:{b:1,c:2,d:{e:3}},n:110,x:1}"),
    ([.set("a", { nil })], "{n:110}"),
    ([.remove("a/d/e")], "{a:{b:1,c:2},n:110}"),
    ([.setWithPriority("n", { 5 }, 7)], "{a:{b:1,c:2,d:{e:3}},n:{.priority:7,.value:5}}"),
    ([.update("a", { ["b": NSNull(), "d/f": true] })], "{a:{c:2,d:{e:3,f:true}},n:110}"),
    ([.update("a", { ["b/.priority": 4] })], "{a:{b:{.priority:4,.value:1},c:2,d:{e:3}},n:110}"),
    ([.update("a", { [:] })], before),
    // A later one replaces what was registered there and below.
    ([.set("a/b", { 8 }), .set("a", { ["z": 1] })], "{a:{z:1},n:110}"),
    ([.remove("a"), .set("a", { 3 })], "{a:3,n:110}"),
    // One below becomes a part of the one above.
    ([.set("a", { ["z": 1] }), .set("a/y/x", { 2 })], "{a:{y:{x:2},z:1},n:110}"),
    ([.remove("a"), .set("a/b", { 9 })], "{a:{b:9},n:110}"),
    ([.set("a", { ["z": 1, "y": 2] }), .remove("a/z")], "{a:{y:2},n:110}"),
    ([.set("a", { ["z": 1] }), .remove("a/z")], "{n:110}"),
    ([.set("a", { 5 }), .remove("a/z")], "{a:5,n:110}"),
    // Cancelling forgets the place and all below, and takes apart what is above.
    ([.set("a/b", { 8 }), .set("x", { 1 }), .cancel("a")], "{a:{b:1,c:2,d:{e:3}},n:110,x:1}"),
    ([.set("a", { ["b": 8, "c": 9] }), .cancel("a/b")], "{a:{b:1,c:9,d:{e:3}},n:110}"),
    (
      [.set("a", { ["d": ["e": 8, "f": 9], "c": 7] }), .cancel("a/d/e")],
      "{a:{b:1,c:7,d:{e:3,f:9}},n:110}"
    ),
    (
      [.setWithPriority("a", { ["b": 8] }, 2), .cancel("a/c")],
      "{a:{.priority:2,b:8,c:2,d:{e:3}},n:110}"
    ),
    ([.set("a", { 5 }), .cancel("a/b")], "{a:5,n:110}"),
    ([.remove("a"), .cancel("a/b")], before),
    ([.set("a/b", { 8 }), .set("n", { 0 }), .cancel("/")], before),
    ([.cancel("nothing/here")], before),
    // Server values are resolved against the data of the moment.
    ([.set("n", { ServerValue.increment(5) })], "{a:{b:1,c:2,d:{e:3}},n:115}"),
    ([.set("a", { ["b": ServerValue.increment(5), "q": 1] })], "{a:{b:6,q:1},n:110}"),
    (
      [.set("a", { ["q": 1] }), .set("a/b", { ServerValue.increment(5) })],
      "{a:{b:6,q:1},n:110}"
    ),
    ([.update("/", { ["n": ServerValue.increment(-10), "a": NSNull()] })], "{n:100}"),
    ([.set("n", { ServerValue.increment(5) }), .set("n", { 1 })], "{a:{b:1,c:2,d:{e:3}},n:1}"),
  ]

  @Test("operations and what they leave", arguments: rows.indices)
  func table(row: Int) async throws {
    let (operations, expected) = Self.rows[row]
    try await root.setValue(["a": ["b": 1, "c": 2, "d": ["e": 3]], "n": 10])
    for operation in operations { try await operation.register(at: root) }
    // Server values are resolved against what is there at the end.
    try await root.child("n").setValue(ServerValue.increment(100))
    #expect(shown(try await root.getData().value) == Self.before, "nothing is written yet")
    database.goOffline()
    #expect(shown(try await root.getData().valueInExportFormat()) == expected, "\(operations)")
    // And then they are forgotten.
    try await root.setValue(["kept": 1])
    database.goOnline()
    database.goOffline()
    #expect(shown(try await root.getData().value) == "{kept:1}")
  }

  @Test("all operations are one write, with the events of one write")
  func oneWrite() async throws {
    try await root.setValue(["a": 1, "b": 2])
    let recorder = Recorder(database)
    recorder.listen("", root, [.childAdded, .childChanged, .childRemoved, .value])
    _ = await recorder.take()
    try await root.child("a").onDisconnectRemoveValue()
    try await root.child("b").onDisconnectSetValue(ServerValue.increment(3))
    try await root.child("c").onDisconnectSetValue(["at": ServerValue.timestamp()])
    try await root.child("c/at").onDisconnectSetValue("then")
    #expect(await recorder.take() == [])
    let writes = database.statistics.lastWrite
    database.goOffline()
    #expect(database.statistics.lastWrite == writes + 1)
    #expect(
      await recorder.take() == [
        "removed a=1", "added c={at:\"then\"} after b", "changed b=5 after nil",
        "value {b:5,c:{at:\"then\"}}",
      ])
  }

  // Were each operation to look at the others, these would take minutes.
  @Test(
    "many operations with server values are one write as well", arguments: [false, true])
  func many(belowOne: Bool) async throws {
    let clients = 20_000
    let status = root.child("status")
    if belowOne { try await status.onDisconnectSetValue(["old": ServerValue.timestamp()]) }
    for client in 0..<clients {
      try await status.child("\(client)").onDisconnectSetValue(
        ["left": ServerValue.timestamp(), "times": ServerValue.increment(1)],
        andPriority: ServerValue.timestamp())
    }
    let writes = database.statistics.lastWrite
    database.goOffline()
    #expect(database.statistics.lastWrite == writes + 1)
    let written = try await status.getData()
    #expect(written.childrenCount == UInt(clients) + (belowOne ? 1 : 0))
    #expect(written["old"].exists() == belowOne)
    let problems = written.filter {
      $0.key != "old"
        && ($0["left"].int == nil || $0["times"].int != 1
          || $0["left"].int != $0.priority as? Int)
    }
    #expect(problems.isEmpty, "\(problems.prefix(3))")
  }

  @Test("a timestamp is that of the disconnection")
  func timestamp() async throws {
    let clock = SimulatedClock(at: 1000)
    let database = Database.inMemory(
      options: DatabaseOptions(),
      environment: Environment(
        fileSystem: SimulatedDisk(seed: 1), clock: clock, randomness: SeededRandomness(seed: 1)))
    let ref = database.reference().child("last")
    try await ref.onDisconnectSetValue(
      ServerValue.timestamp(), andPriority: ServerValue.timestamp())
    clock.set(to: 2000)
    database.goOffline()
    #expect(
      shown(try await ref.getData().valueInExportFormat()) == "{.priority:2000,.value:2000}")
  }

  @Test("an orderly end writes them, and so does the end of the last reference")
  func ends() async throws {
    let directory = TemporaryDirectory()
    do {
      let database = try await Database.open(at: directory.path)
      try await database.reference().child("closed").onDisconnectSetValue(true)
      try await database.close()
    }
    do {
      let database = try await Database.open(at: directory.path)
      #expect(shown(try await database.reference().getData().value) == "{closed:true}")
      try await database.reference().child("left").onDisconnectSetValue(true)
      // Offline is no hindrance: what was registered since is for the end.
      database.goOffline()
      #expect(try await database.reference().child("left").getData().bool == true)
      try await database.reference().child("late").onDisconnectSetValue(true)
    }
    let reopened = try await openOnceFree(directory.path)
    #expect(
      shown(try await reopened.reference().getData().value) == "{closed:true,late:true,left:true}")
    try await reopened.close()
  }

  /// The directory is unlocked soon after the release of the last reference, on another thread.
  private func openOnceFree(_ path: String) async throws -> Database {
    while true {
      do {
        return try await Database.open(at: path)
      } catch let error as DatabaseError where error.code == .locked {
        await Task.yield()
      }
    }
  }

  @Test("a crash forgets them")
  func crash() async throws {
    let disk = SimulatedDisk(seed: 1)
    let environment = Environment(
      fileSystem: disk, clock: SimulatedClock(), randomness: SeededRandomness(seed: 1))
    let database = try Database.open(
      at: "/db", options: DatabaseOptions(), environment: environment, mode: .readWrite)
    try await database.reference().setValue(1)
    try await database.reference().onDisconnectSetValue(2)
    let survived = Environment(
      fileSystem: disk.copy(), clock: SimulatedClock(), randomness: SeededRandomness(seed: 2))
    let reopened = try Database.open(
      at: "/db", options: DatabaseOptions(), environment: survived, mode: .readWrite)
    #expect(try await reopened.reference().getData().int == 1)
  }

  @Test("bad input is refused when it is registered, in every form")
  func refused() async throws {
    let cases: [(DatabaseReference, Any?, String)] = [
      (root, Date(), "InvalidFirebaseData"), (root.child("#"), 1, "InvalidPathValidation"),
      (database.reference(withPath: ".info/connected"), 1, "WritablePathValidation"),
    ]
    for (ref, value, name) in cases {
      #expect(await failure { try await ref.onDisconnectSetValue(value) }?.name == name)
      #expect(
        await failure { try await ref.onDisconnectSetValue(value, andPriority: 1) }?.name == name)
      #expect(
        await failure { try await ref.onDisconnectUpdateChildValues(["a": value!]) }?.name == name)
      let completion = await withCheckedContinuation { continuation in
        ref.onDisconnectSetValue(value) { error, same in
          #expect(same === ref)
          continuation.resume(returning: error as? DatabaseError)
        }
      }
      #expect(completion?.name == name)
      if name != "InvalidFirebaseData" {
        #expect(await failure { try await ref.onDisconnectRemoveValue() }?.name == name)
        #expect(await failure { try await ref.cancelDisconnectOperations() }?.name == name)
      }
    }
    let deep = (1...32).map { "\($0)" }.joined(separator: "/")
    #expect(
      await failure { try await root.child(deep).onDisconnectSetValue(["x": 1]) }?.code
        == .invalidData)
    #expect(
      await failure { try await root.onDisconnectUpdateChildValues(["a": 1, "a/b": 2]) }?.code
        == .invalidData)
    database.goOffline()
    #expect(try await root.getData().exists() == false)
  }

  @Test("blocks are called, and errors without a block are passed to the error handler")
  func blocks() async throws {
    let errors = Shared<[String]>([])
    var options = DatabaseOptions()
    options.errorHandler = { error in errors.withLock { $0.append(error.name) } }
    let database = Database.inMemory(options: options)
    let ref = database.reference().child("p")
    let recorder = Recorder(database)
    plainly {
      ref.onDisconnectSetValue(1) { error, ref in recorder.note("set \(error == nil) \(ref.key!)") }
      ref.onDisconnectSetValue(1, andPriority: 2) { error, _ in
        recorder.note("priority \(error == nil)")
      }
      ref.onDisconnectUpdateChildValues(["a": 1]) { error, _ in
        recorder.note("update \(error == nil)")
      }
      ref.cancelDisconnectOperations { error, _ in recorder.note("cancel \(error == nil)") }
      ref.onDisconnectRemoveValue { error, _ in recorder.note("remove \(error == nil)") }
      ref.onDisconnectSetValue(1)
      ref.onDisconnectSetValue(1, andPriority: 2)
      ref.onDisconnectUpdateChildValues(["x": true])
      ref.onDisconnectRemoveValue()
      ref.cancelDisconnectOperations()
      ref.onDisconnectSetValue(Date())
      ref.child("#").onDisconnectRemoveValue()
      ref.child("#").cancelDisconnectOperations()
    }
    #expect(
      await recorder.take() == [
        "set true p", "priority true", "update true", "cancel true", "remove true",
      ])
    #expect(
      errors.value == [
        "InvalidFirebaseData", "InvalidPathValidation", "InvalidPathValidation",
      ])
    try await database.close()
    #expect(await failure { try await ref.onDisconnectSetValue(1) }?.code == .closed)
    plainly {
      database.goOffline()
      database.goOnline()
    }
    await settle(database)
    #expect(errors.withLock { $0.suffix(2) } == ["DatabaseClosed", "DatabaseClosed"])
  }

  @Test("the error of a write that is refused when it is due is passed to the error handler")
  func refusedLate() async throws {
    let errors = Shared<[String]>([])
    var options = DatabaseOptions()
    options.errorHandler = { error in errors.withLock { $0.append(error.name) } }
    options.writeByteLimit = 1000
    let directory = TemporaryDirectory()
    let database = try await Database.open(at: directory.path, options: options)
    let text = String(repeating: "x", count: 600)
    try await database.reference().child("a").onDisconnectSetValue(text)
    try await database.reference().child("b").onDisconnectSetValue(text)
    try await database.close()
    await settle(database)
    #expect(errors.value == ["WriteTooLarge"])
  }

  @Test("opened for reading only there is nothing to register")
  func readOnly() async throws {
    let directory = TemporaryDirectory()
    try await Database.open(at: directory.path).close()
    let reader = try await Database.open(readOnly: directory.path)
    let ref = reader.reference()
    #expect(await failure { try await ref.onDisconnectSetValue(1) }?.code == .readOnly)
    #expect(await failure { try await ref.cancelDisconnectOperations() }?.code == .readOnly)
    reader.goOffline()
    try await reader.close()
  }

  @Test("offline nothing stops: writes, reads and events go on")
  func goesOn() async throws {
    let recorder = Recorder(database)
    recorder.listen("", root, [.value])
    database.goOffline()
    database.goOffline()
    try await root.setValue(1)
    #expect(try await root.getData().int == 1)
    #expect(await recorder.take() == ["value null", "value 1"])
    database.goOnline()
    #expect(await recorder.take() == [])
  }
}
