import Dendro
import DendroServer
import DendroTestSupport
import DendroTree
import Foundation
import Synchronization
import Testing

@testable import DendroSync

/// What a synced database keeps in its directory.
@Suite("synced databases: persistence")
struct PersistenceTests {
  private func serve(_ database: Database, port: Int = 0) async throws -> DatabaseServer {
    var options = DatabaseServerOptions()
    options.port = UInt16(port)
    return try await DatabaseServer.start(serving: database, options: options)
  }

  @Test("writes without an answer survive, show at once, and are sent in their order")
  func pendingWrites() async throws {
    let folder = try TemporaryFolder()
    let port = try ReservedPort.take()
    let errors = Mutex<[DatabaseError.Code?]>([])
    do {
      let database = try synced(port, at: folder.path + "/db")
      let ref = database.reference(withPath: "a")
      for number in 0..<20 {
        ref.child("k\(number % 7)").setValue(number) { error, _ in
          errors.withLock { $0.append((error as? DatabaseError)?.code) }
        }
      }
      ref.child("count").setValue(ServerValue.increment(2)) { _, _ in }
      ref.child("count").setValue(ServerValue.increment(3)) { _, _ in }
      ref.withoutWaiting { $0.updateChildValues(["k1/deep": [true], "k2": NSNull()]) }
      try await database.synchronize()
      try await database.close()
    }
    #expect(errors.value == Array(repeating: .pending, count: 20))
    let database = try synced(port, at: folder.path + "/db")
    let viewer = Viewer(database)
    viewer.listen("a", database.reference(withPath: "a").queryOrderedByKey())
    let before = await viewer.take()
    #expect(
      before["a"]?.map(\.description) == [
        "childAdded count=5 after nil", "childAdded k0=14 after count",
        "childAdded k1={\"deep\":[true]} after k0", "childAdded k3=17 after k1",
        "childAdded k4=18 after k3", "childAdded k5=19 after k4", "childAdded k6=13 after k5",
      ])
    let origin = Database.inMemory()
    let server = try await serve(origin, port: port)
    database.goOnline()
    try await database.waitForPendingWrites()
    let there = try await origin.reference().getData().node
    #expect(
      JSONWriter.string(there)
        == #"{"a":{"count":5,"k0":14,"k1":{"deep":[true]},"k3":17,"k4":18,"k5":19,"k6":13}}"#)
    try await eventually {
      try await database.reference(withPath: "a").getData().node == there.child(Key("a"))
    }
    await server.stop()
    try await database.close()
    let third = try synced(port, at: folder.path + "/db")
    #expect(try await third.reference(withPath: "a/count").getData().value as? Int == 5)
    try await third.waitForPendingWrites()
    try await third.close()
    try await origin.close()
  }

  @Test(
    "as many writes as are made offline are there after a kill, and reach the server in their order"
  )
  func manyWrites() async throws {
    let folder = try TemporaryFolder()
    let port = try ReservedPort.take()
    let count = Scale.scaled(100_000)
    do {
      let database = try synced(port, at: folder.path + "/db")
      database.goOffline()
      let list = database.reference(withPath: "list")
      for number in 1...count {
        list.child("k\(number % 1000)").withoutWaiting { $0.setValue(number) }
      }
      try await database.synchronize()
      // The files as a kill at this moment would leave them.
      try FileManager.default.copyItem(
        atPath: folder.path + "/db", toPath: folder.path + "/killed")
      try await database.close()
    }
    let database = try synced(port, at: folder.path + "/killed")
    #expect(try database.pendingWrites().map(\.id) == Array(1...count))
    let origin = Database.inMemory()
    let server = try await serve(origin, port: port)
    database.goOnline()
    try await database.waitForPendingWrites()
    let there = try await origin.reference(withPath: "list").getData()
    for child in there {
      let number = Int(child.key.dropFirst()) ?? 0
      let last = count - (count - number) % 1000
      #expect(child.value as? Int == last)
    }
    #expect(there.childrenCount == UInt(min(1000, count)))
    try await database.close()
    await server.stop()
    try await origin.close()
  }

  @Test("what a server has said is there at the next opening, without a network")
  func cache() async throws {
    let folder = try TemporaryFolder()
    let origin = Database.inMemory()
    for number in 0..<100 {
      try await origin.reference(withPath: "list/n\(100 + number)").setValue(
        ["rank": number * 37 % 100, "name": "item \(number)"])
    }
    try await origin.reference(withPath: "settings").setValue(["a": 1, "b": ["c": 2]])
    let server = try await serve(origin)
    let port = Int(server.port)
    func window(_ database: Database) -> DatabaseQuery {
      database.reference(withPath: "list").queryOrdered(byChild: "rank").queryLimited(toLast: 5)
    }
    do {
      let database = try synced(port, at: folder.path + "/db")
      let viewer = Viewer(database)
      viewer.listen("window", window(database))
      viewer.listen("settings", database.reference(withPath: "settings"))
      _ = try await viewer.take(9)
      try await origin.reference(withPath: "settings/b/c").setValue(3)
      try await origin.reference(withPath: "list/n100/rank").setValue(1000)
      try await eventually {
        let shown = try await window(database).getData()
        let value = try await database.reference(withPath: "settings/b/c").getData().value as? Int
        return shown.childrenCount == 5 && shown.hasChild("n100") && value == 3
      }
      try await database.close()
    }
    await server.stop()
    let database = try synced(port, at: folder.path + "/db")
    database.goOffline()
    #expect(
      JSONWriter.string(try await database.reference(withPath: "settings").getData().node)
        == #"{"a":1,"b":{"c":3}}"#)
    #expect(try await database.reference(withPath: "settings/b").getData().exists())
    let shown = try await window(database).getData()
    #expect(shown.childrenCount == 5)
    #expect(shown.node == (try await window(origin).getData().node))
    let viewer = Viewer(database)
    viewer.listen("window", window(database))
    #expect(await viewer.take()["window"]?.last == .value(shown.node))
    // Of the rest nothing is known.
    for ref in [database.reference(withPath: "list"), database.reference(withPath: "other")] {
      await #expect(throws: DatabaseError.self) { try await ref.getData() }
    }
    // The history is that of what the server has said.
    var isThere = false
    for try await change in database.changes(since: 0) where "\(change)".contains("settings/b/c") {
      isThere = true
      break
    }
    #expect(isThere)
    try await database.close()
    // What anybody can look at.
    let reader = try await Database.open(readOnly: folder.path + "/db")
    #expect(try await reader.reference(withPath: "list").getData().childrenCount == 5)
    try await reader.close()
    try await origin.close()
  }

  @Test("a directory belongs to one server")
  func owner() async throws {
    let folder = try TemporaryFolder()
    let port = try ReservedPort.take()
    try await synced(port, at: folder.path + "/db").close()
    func refusal(_ body: () async throws -> Database) async -> DatabaseError? {
      do {
        try await body().close()
        return nil
      } catch {
        return error as? DatabaseError
      }
    }
    let plain = await refusal { try await Database.open(at: folder.path + "/db") }
    #expect(plain?.code == .unavailable)
    #expect(plain?.message.contains("http://127.0.0.1:\(port)") == true)
    #expect(await refusal { try synced(port + 1, at: folder.path + "/db") }?.name == "OtherServer")
    let own = try await Database.open(at: folder.path + "/own")
    try await own.reference(withPath: "a").setValue(1)
    try await own.close()
    #expect(await refusal { try synced(port, at: folder.path + "/own") }?.name == "OwnData")
    let database = try synced(port, at: folder.path + "/db")
    #expect(await refusal { try synced(port, at: folder.path + "/db") }?.code == .locked)
    #expect(database.isPersistenceEnabled)
    #expect(database.directory == folder.path + "/db")
    try await database.close()
    #expect(
      await refusal { try await Database.open(at: folder.path + "/db", syncingWith: "http://a:1") }?
        .name == "NotEnabled")
  }

  @Test("the tool lists what waits, and changes no data of a server")
  func tool() async throws {
    let folder = try TemporaryFolder()
    let database = try synced(ReservedPort.take(), at: folder.path + "/db")
    database.reference(withPath: "a/b").withoutWaiting { $0.setValue(ServerValue.increment(3)) }
    try await database.close()
    func dendro(_ words: String...) throws -> (status: Int32, output: String, errors: String) {
      let own = try FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")
      let process = Process()
      process.executableURL = URL(fileURLWithPath: own).deletingLastPathComponent()
        .appending(path: "dendro")
      process.arguments = words
      let paths = ["output", "errors"].map { "\(folder.path)/\($0)" }
      for path in paths { try Data().write(to: URL(fileURLWithPath: path)) }
      process.standardOutput = FileHandle(forWritingAtPath: paths[0])
      process.standardError = FileHandle(forWritingAtPath: paths[1])
      try process.run()
      process.waitUntilExit()
      let texts = try paths.map { try String(contentsOfFile: $0, encoding: .utf8) }
      return (process.terminationStatus, texts[0], texts[1])
    }
    let directory = folder.path + "/db"
    let listed = try dendro("pending", directory)
    #expect(listed.status == 0)
    #expect(listed.output.hasSuffix("anonymous  increment  /a/b  + 3\n"), "\(listed.output)")
    #expect(try dendro("pending", directory, "--json").output.contains("\"held\":false"))
    #expect(try dendro("info", directory, "--full").output.contains("1 write without an answer"))
    #expect(try dendro("set", directory, "/x", "1").status == 65)
    let serving = try dendro("serve", directory, "--port", "0")
    #expect(serving.status == 65)
    #expect(serving.errors.contains("has the data of another server"), "\(serving.errors)")
    #expect(try dendro("checkpoint", directory).status == 0)
    let above = try dendro("pending", folder.path)
    #expect(above.status == 1)
    #expect(above.errors.contains("name one of them, as in \(directory)"), "\(above.errors)")
    let file = try folder.write("file", "")
    let ofFile = try dendro("pending", file)
    #expect(ofFile.status == 74)
    #expect(
      ofFile.errors.contains("\(file) is a file, or below one"), "\(ofFile.errors)")
    #expect(try dendro("pending", directory).output == listed.output)
  }

  @Test("opening sends what waits and begins to mirror, and looking for a connection connects")
  func opening() async throws {
    let folder = try TemporaryFolder()
    let port = try ReservedPort.take()
    do {
      let database = try synced(port, at: folder.path + "/db")
      database.reference(withPath: "a").withoutWaiting { $0.setValue(1) }
      try await database.close()
    }
    let origin = Database.inMemory()
    try await origin.reference(withPath: "m").setValue(2)
    let server = try await serve(origin, port: port)
    let waiting = try synced(port, at: folder.path + "/db")
    try await eventually { try await origin.reference(withPath: "a").getData().exists() }
    try await waiting.close()

    let mirror = try synced(port, at: folder.path + "/mirror") { $0.mirror = ["m"] }
    try await eventually {
      try PlainRequest.send("GET", server.port, "/.metrics").body.contains("dendro_listens 1\n")
    }
    try await mirror.close()

    let looking = try synced(port, at: folder.path + "/looking")
    let isConnected = Mutex(false)
    looking.reference(withPath: ".info/connected").observe(.value) { @Sendable snapshot in
      if snapshot.value as? Bool == true { isConnected.withLock { $0 = true } }
    }
    try await eventually { isConnected.value }
    try await looking.close()
    await server.stop()
    try await origin.close()
  }

  @Test("what is mirrored is kept in step once a user signs in who may read it")
  func mirrorOfUser() async throws {
    let folder = try TemporaryFolder()
    let origin = Database.inMemory()
    try await origin.reference(withPath: "m").setValue(2)
    var options = DatabaseServerOptions()
    options.port = 0
    options.rulesFile = try folder.write(
      "rules.json", "{\"rules\":{\"m\":{\".read\":\"auth != null\"}}}")
    let server = try await DatabaseServer.start(serving: origin, options: options)
    for _ in 0..<2 {
      let database = try synced(Int(server.port), at: folder.path + "/db") { $0.mirror = ["m"] }
      // The server has refused it by then, if it was asked.
      _ = try? await database.reference(withPath: "m/x").getData()
      try database.authenticate { .user(unsignedToken("ann")) }
      try await eventually {
        try PlainRequest.send("GET", server.port, "/.metrics").body.contains("dendro_listens 1\n")
      }
      try await database.close()
      try await eventually {
        try PlainRequest.send("GET", server.port, "/.metrics").body.contains("dendro_listens 0\n")
      }
    }
    await server.stop()
    try await origin.close()
  }

  @Test("locations that are mirrored answer without a network")
  func mirror() async throws {
    let folder = try TemporaryFolder()
    let origin = Database.inMemory()
    try await origin.reference(withPath: "m/a/b").setValue(1)
    let server = try await serve(origin)
    let port = Int(server.port)
    let database = try synced(port, at: folder.path + "/db") { $0.mirror = ["m"] }
    database.goOnline()
    try await eventually { try await database.reference(withPath: "m/a").getData().exists() }
    try await origin.reference(withPath: "m/a/c").setValue(2)
    try await eventually { try await database.reference(withPath: "m/a/c").getData().exists() }
    try await database.close()
    await server.stop()
    let later = try synced(port, at: folder.path + "/db") { $0.mirror = ["/m"] }
    #expect(
      JSONWriter.string(try await later.reference(withPath: "m/a").getData().node)
        == #"{"b":1,"c":2}"#)
    try await later.close()
    #expect(throws: DatabaseError.self) {
      try synced(port, at: folder.path + "/db") { $0.mirror = ["a.b"] }
    }
    try await origin.close()
  }

  @Test("beyond the limit the targets go that were not used for longest, and never a write")
  func limit() async throws {
    let folder = try TemporaryFolder()
    let origin = Database.inMemory()
    let text = String(repeating: "x", count: 200_000)
    for number in 0..<10 {
      try await origin.reference(withPath: "big/n\(number)").setValue(["text": text])
    }
    let server = try await serve(origin)
    let database = try synced(Int(server.port), at: folder.path + "/db")
    database.persistenceCacheSizeBytes = 1 << 20
    database.reference(withPath: "mine").withoutWaiting { $0.setValue("kept") }
    let held = Viewer(database)
    held.listen("held", database.reference(withPath: "big/n0"))
    for number in 1..<10 {
      let ref = database.reference(withPath: "big/n\(number)")
      let (values, end) = AsyncStream.makeStream(of: Void.self)
      let handle = ref.observe(.value) { _ in end.yield() }
      for await _ in values { break }
      ref.removeObserver(withHandle: handle)
    }
    try await database.waitForPendingWrites()
    database.goOffline()
    // What is above the limit goes a little later.
    var known: [Int] = []
    try await eventually {
      known = []
      for number in 0..<10 {
        let ref = database.reference(withPath: "big/n\(number)")
        if (try? await ref.getData()) != nil { known.append(number) }
      }
      return known.count <= 5
    }
    #expect(known.contains(0) && known.contains(9) && !known.contains(1), "\(known)")
    #expect(known.count >= 2, "\(known)")
    try await database.close()
    let reader = try await Database.open(readOnly: folder.path + "/db")
    let kept = try await reader.reference(withPath: "big").getData()
    #expect(kept.childrenCount == UInt(known.count))
    try await reader.close()
    await server.stop()
    try await origin.close()
  }

  @Test("what the server has taken shows later without a network, though nothing listens to it")
  func takenWrites() async throws {
    let folder = try TemporaryFolder()
    let origin = Database.inMemory()
    try await origin.reference(withPath: "list").setValue(["a": 1, "b": 1, "c": 1])
    var options = DatabaseServerOptions()
    options.port = 0
    let server = try await DatabaseServer.start(serving: origin, options: options)
    let port = Int(server.port)
    func life(_ body: (DatabaseReference) async throws -> Void) async throws {
      let database = try synced(port, at: folder.path + "/db")
      try await body(database.reference(withPath: "list"))
      try await database.close()
    }
    try await life { list in
      let (events, teller) = AsyncStream.makeStream(of: Void.self)
      list.observe(.value) { _ in teller.yield() }
      for await _ in events { break }
    }
    try await life { list in
      list.database.goOffline()
      list.child("a").withoutWaiting { $0.setValue(2) }
      list.withoutWaiting {
        $0.updateChildValues(["b": NSNull(), "d/e": ServerValue.increment(3)])
      }
      list.child("c").withoutWaiting { $0.setPriority(7) }
    }
    try await life { list in
      // Of a part of it the server tells what is there, and of the rest not.
      let (events, teller) = AsyncStream.makeStream(of: Void.self)
      list.child("a").observe(.value) { _ in teller.yield() }
      list.queryOrderedByKey().queryLimited(toFirst: 1).observe(.value) { _ in }
      for await _ in events { break }
      list.database.goOnline()
      try await list.database.waitForPendingWrites()
    }
    try await life { list in
      list.database.goOffline()
      let data = try await list.getData()
      #expect(JSONWriter.string(data.node) == #"{"a":2,"c":1,"d":{"e":3}}"#)
      #expect(data["c"].priority as? Int == 7)
    }
    await server.stop()
    try await origin.close()
  }

  @Test("the writes of another user wait: they are not sent, do not show and do not block")
  func users() async throws {
    let folder = try TemporaryFolder()
    let origin = Database.inMemory()
    let port = try ReservedPort.take()
    let ann: @Sendable () async throws -> DatabaseToken = { .user(unsignedToken("ann")) }
    let bob: @Sendable () async throws -> DatabaseToken = { .user(unsignedToken("bob")) }
    do {
      let database = try synced(port, at: folder.path + "/db")
      try database.authenticate(with: ann)
      database.reference(withPath: "by/ann").withoutWaiting {
        $0.setValue(ServerValue.increment(1))
      }
      database.reference(withPath: "by/ann").withoutWaiting {
        $0.setValue(ServerValue.increment(1))
      }
      try await eventually { try database.pendingWrites().map(\.userID) == ["ann", "ann"] }
      try database.authenticate(with: bob)
      try await eventually { !(try await shown(database, "by/ann")) }
      database.reference(withPath: "by/bob").withoutWaiting { $0.setValue(1) }
      try database.authenticate(with: nil)
      database.reference(withPath: "by/nobody").withoutWaiting { $0.setValue(1) }
      try await database.close()
    }
    var options = DatabaseServerOptions()
    options.port = UInt16(port)
    options.trustsUnsignedTokens = true
    let server = try await DatabaseServer.start(serving: origin, options: options)
    let database = try synced(port, at: folder.path + "/db")
    func there(_ text: String) async throws {
      try await eventually {
        JSONWriter.string(try await origin.reference(withPath: "by").getData().node) == text
      }
    }
    try database.authenticate(with: ann)
    try await there(#"{"ann":2}"#)
    try await eventually { try database.pendingWrites().map(\.userID) == ["bob", nil] }
    try await database.waitForPendingWrites()
    try database.authenticate(with: nil)
    try await there(#"{"ann":2,"nobody":1}"#)
    try database.authenticate(with: bob)
    try await there(#"{"ann":2,"bob":1,"nobody":1}"#)
    try await database.close()
    await server.stop()
    try await origin.close()
  }

  /// Whether a database shows something at a path.
  private func shown(_ database: Database, _ path: String) async throws -> Bool {
    let viewer = Viewer(database)
    viewer.listen("x", database.reference(withPath: path))
    defer { viewer.unlisten("x") }
    let seen = await viewer.take()["x"] ?? []
    return seen.contains { if case .value(let node) = $0 { !node.isEmpty } else { false } }
  }
}
