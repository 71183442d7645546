import Dendro
import DendroRules
import DendroServer
import DendroTestSupport
import DendroTree
import Foundation
import Synchronization
import Testing

@testable import DendroSync

/// Databases that keep in step with a real server.
@Suite("synced databases")
struct SyncedDatabaseTests {
  // MARK: Writing

  @Test("a write shows at once, and its completion means the server's answer")
  func write() async throws {
    try await serving { served, server in
      let database = synced(Int(server.port))
      let ref = database.reference(withPath: "a/b")
      let viewer = Viewer(database)
      viewer.listen("v", ref)
      try await ref.setValue(["x": 1, "y": ["z": "text"]])
      #expect(try await served.reference(withPath: "a/b/y/z").getData().value as? String == "text")
      let seen = await viewer.take()
      #expect(seen["v"]?.last == .value(try node(#"{"x":1,"y":{"z":"text"}}"#)))
      try await ref.updateChildValues(["x": NSNull(), "y/z": true, "n": ServerValue.increment(2)])
      try await ref.child("n").setValue(ServerValue.increment(3))
      try await ref.update { update in
        update.set("k", "v")
        update.increment("n", by: 1)
      }
      try await ref.child("n").setPriority(7)
      let there = try await served.reference(withPath: "a/b").getData().node
      #expect(
        JSONWriter.string(there, style: JSONStyle(.export))
          == #"{"k":"v","n":{".value":6,".priority":7},"y":{"z":true}}"#)
      try await ref.removeValue()
      #expect(try await !served.reference(withPath: "a").getData().exists())
      #expect(await viewer.take()["v"]?.last == .value(.empty))
      try await database.close()
    }
  }

  @Test("server values show as estimates, and are replaced by what the server has made of them")
  func serverValues() async throws {
    try await serving { served, server in
      let database = synced(Int(server.port))
      let ref = database.reference(withPath: "t")
      let viewer = Viewer(database)
      viewer.listen("v", ref)
      _ = try await viewer.take(1)
      ref.withoutWaiting { $0.setValue(ServerValue.timestamp()) }
      let first = try #require(await viewer.take()["v"]?.first)
      guard case .child = first else {
        guard case .value(let node) = first, case .integer(let time)? = node.scalar else {
          Issue.record("\(first)")
          return
        }
        #expect(abs(time - Int64(Date().timeIntervalSince1970 * 1000)) < 60_000)
        try await database.waitForPendingWrites()
        let there = try await served.reference(withPath: "t").getData()
        #expect(try await ref.getData().node == there.node)
        return try await database.close()
      }
      Issue.record("\(first)")
    }
  }

  @Test("what the server refuses is taken back with its events, and the completion gets the error")
  func refused() async throws {
    let rules = try Rules(#"{"rules":{".read":true,"open":{".write":true}}}"#)
    try await serving { options in
      options.rules = rules
    } _: { served, server in
      let database = synced(Int(server.port))
      let viewer = Viewer(database)
      viewer.listen("v", database.reference(withPath: "shut"))
      _ = try await viewer.take(1)
      let error = await failure { _ = try await database.reference(withPath: "shut").setValue(1) }
      #expect(error?.code == .permissionDenied)
      let seen = await viewer.take()["v"]
      #expect(seen == [.value(try node("1")), .value(.empty)])
      _ = try await database.reference(withPath: "open/a").setValue(1)
      try await database.close()
    }
  }

  @Test("a listen that the server refuses ends with the error")
  func refusedListen() async throws {
    let rules = try Rules(#"{"rules":{"open":{".read":true}}}"#)
    try await serving { options in
      options.rules = rules
    } _: { _, server in
      let database = synced(Int(server.port))
      let viewer = Viewer(database)
      viewer.listen("v", database.reference(withPath: "shut"))
      viewer.listen("o", database.reference(withPath: "open"))
      let seen = try await viewer.take(2)
      #expect(seen == ["v": [.cancelled], "o": [.value(.empty)]])
      let error = await failure {
        for try await _ in database.reference(withPath: "shut").snapshots {}
      }
      #expect(error?.code == .permissionDenied)
      #expect(
        await failure { _ = try await database.reference(withPath: "shut").getData() }?.code
          == .permissionDenied)
      try await database.close()
    }
  }

  // MARK: Without the network

  @Test("what is written offline shows at once, and reaches the server in order")
  func offline() async throws {
    try await serving { served, server in
      let database = synced(Int(server.port))
      let ref = database.reference(withPath: "list")
      let viewer = Viewer(database)
      viewer.listen("v", ref)
      _ = try await viewer.take(1)
      database.goOffline()
      let order = Mutex<[Int]>([])
      for number in 0..<100 {
        ref.child("last").setValue(number) { error, _ in
          if error == nil { order.withLock { $0.append(number) } }
        }
        ref.child("k\(number)").setValue(number, withCompletionBlock: { _, _ in })
      }
      let seen = await viewer.take()["v"]
      guard case .value(let local)? = seen?.last else {
        Issue.record("\(String(describing: seen?.last))")
        return
      }
      #expect(local.childCount == 101)
      #expect(try await served.reference(withPath: "list").getData().exists() == false)
      #expect(
        await failure { _ = try await database.reference(withPath: "else").getData() }?.code
          == .unavailable)
      #expect(try await ref.getData().node == local)
      database.goOnline()
      try await database.waitForPendingWrites()
      await database.waitForPendingEvents()
      #expect(order.value == Array(0..<100))
      #expect(try await served.reference(withPath: "list").getData().node == local)
      try await database.close()
    }
  }

  @Test("a server that ends and comes back is found again, and nothing is lost or seen twice")
  func restartedServer() async throws {
    let data = Database.inMemory()
    var options = DatabaseServerOptions()
    options.port = UInt16(try ReservedPort.take())
    var server = try await DatabaseServer.start(serving: data, options: options)
    let database = synced(Int(server.port))
    let viewer = Viewer(database)
    viewer.listen("v", database.reference(withPath: "n"))
    var expected: [Seen] = [.value(.empty)]
    _ = try await viewer.take(1)
    expected = []
    for number in 1...2 {
      await server.stop()
      database.reference(withPath: "n").setValue(number, withCompletionBlock: { _, _ in })
      expected.append(.value(Node(.integer(Int64(number)))))
      server = try await DatabaseServer.start(serving: data, options: options)
      try await database.waitForPendingWrites()
    }
    #expect(await viewer.take()["v"] == expected)
    #expect(try await data.reference(withPath: "n").getData().value as? Int == 2)
    await server.stop()
    try await database.close()
    try await data.close()
  }

  @Test("purging takes back what has no answer, the last first, and says so")
  func purge() async throws {
    try await serving { _, server in
      let database = synced(Int(server.port))
      let ref = database.reference(withPath: "a")
      _ = try await ref.setValue(1)
      let viewer = Viewer(database)
      viewer.listen("v", ref)
      _ = try await viewer.take(1)
      database.goOffline()
      let codes = Mutex<[DatabaseError.Code?]>([])
      for number in 2...3 {
        ref.setValue(number) { error, _ in
          codes.withLock { $0.append((error as? DatabaseError)?.code) }
        }
      }
      database.purgeOutstandingWrites()
      let seen = await viewer.take()["v"]
      #expect(seen == [2, 3, 2, 1].map { .value(Node(.integer($0))) })
      #expect(codes.value == [.canceled, .canceled])
      try await database.close()
    }
  }

  @Test("closing fails what waits for an answer, and later calls")
  func closing() async throws {
    // What it waits for needs the threads of the pool.
    try await onOwnThread {
      let server = try ScriptedServer()
      let database = synced(server.port)
      let ref = database.reference(withPath: "a")
      let write = Task { await failure { _ = try await ref.setValue(1) } }
      let transaction = Task {
        await failure { _ = try await ref.runTransactionBlock { .success(withValue: $0) } }
      }
      let read = Task {
        await failure { _ = try await database.reference(withPath: "b").getData() }
      }
      try server.accept()
      _ = try server.request()
      try await database.close()
      #expect(await write.value?.code == .closed)
      #expect(await transaction.value?.code == .closed)
      #expect(await read.value?.code == .closed)
      #expect(await failure { _ = try await ref.setValue(2) }?.code == .closed)
      #expect(await failure { _ = try await ref.getData() }?.code == .closed)
    }
  }

  // MARK: Reading

  @Test("a read gives what is known, or else what the server says")
  func reading() async throws {
    try await serving { served, server in
      let database = synced(Int(server.port))
      _ = try await served.reference().setValue(["a": ["x": 1, "y": 2, "z": 3], "b": 4])
      let query = database.reference(withPath: "a").queryOrderedByValue().queryLimited(toLast: 2)
      #expect(try await query.getData().node == node(#"{"y":2,"z":3}"#))
      #expect(try await database.reference(withPath: "b").getData().value as? Int == 4)
      let ref = database.reference(withPath: "a")
      ref.keepSynced(true)
      let viewer = Viewer(database)
      viewer.listen("v", ref)
      _ = try await viewer.take(4)
      viewer.unlisten("v")
      database.goOffline()
      #expect(try await query.getData().node == node(#"{"y":2,"z":3}"#))
      #expect(try await ref.child("x").getData().value as? Int == 1)
      try await database.close()
    }
  }

  @Test("sequences give each state that is whole, and each event of a child")
  func sequences() async throws {
    try await serving { served, server in
      let database = synced(Int(server.port))
      let ref = database.reference(withPath: "s")
      let values = Task {
        var values: [Int] = []
        for try await snapshot in ref.child("n").snapshots {
          values.append(snapshot.value as? Int ?? 0)
          if values.last == 3 { break }
        }
        return values
      }
      let keys = Task {
        var keys: [String] = []
        for try await event in ref.child("list").childEvents() {
          keys.append(event.snapshot.key)
          if keys.count == 3 { break }
        }
        return keys
      }
      for number in 1...3 {
        _ = try await served.reference(withPath: "s/n").setValue(number)
        _ = try await served.reference(withPath: "s/list/k\(number)").setValue(number)
      }
      let seen = try await values.value
      #expect(seen == seen.sorted() && seen.last == 3)
      #expect(try await keys.value == ["k1", "k2", "k3"])
      try await database.close()
    }
  }

  @Test("what only the owner of the data has is refused with a sentence")
  func unavailable() async throws {
    try await serving { _, server in
      let database = synced(Int(server.port))
      #expect(await failure { try database.read { _ in } }?.code == .unavailable)
      #expect(await failure { try await database.checkpoint() }?.code == .unavailable)
      #expect(
        await failure { _ = try await database.reference().snapshot(at: 1) }?.code == .unavailable)
      let session = database.makeSession()
      #expect(throws: DatabaseError.self) {
        try session.onDisconnectSetValue(1, at: database.reference(withPath: "a"))
      }
      #expect(!database.isPersistenceEnabled)
      try await database.synchronize()
      try await database.close()
    }
  }

  // MARK: Transactions

  @Test("transactions of several clients count each other")
  func transactions() async throws {
    try await serving { served, server in
      let databases = (0..<4).map { _ in synced(Int(server.port)) }
      let count = max(4, Scale.scaled(100))
      try await withThrowingTaskGroup(of: Void.self) { group in
        for database in databases {
          group.addTask {
            for _ in 0..<count {
              while true {
                do {
                  _ = try await database.reference(withPath: "count").transaction { data in
                    data.value = (data.value as? Int ?? 0) + 1
                  }
                  break
                } catch let error as DatabaseError where error.name == "maxretry" {}
              }
            }
          }
        }
        try await group.waitForAll()
      }
      #expect(
        try await served.reference(withPath: "count").getData().value as? Int == 4 * count)
      for database in databases { try await database.close() }
    }
  }

  @Test("transactions started one after the other see each other's results, also above and below")
  func transactionsInARow() async throws {
    try await serving { served, server in
      _ = try await served.reference(withPath: "x").setValue(10)
      let database = synced(Int(server.port))
      let root = database.reference()
      let viewer = Viewer(database)
      viewer.listen("v", root)
      _ = try await viewer.take(2)
      let ends = Mutex<[Bool]>([])
      let start:
        @Sendable (
          DatabaseReference, @escaping @Sendable (MutableData) -> TransactionResult
        ) -> Void = { ref, block in
          ref.runTransactionBlock(block) { _, committed, _ in ends.withLock { $0.append(committed) }
          }
        }
      start(root.child("x")) { data in
        data.value = (data.value as? Int ?? 0) * 2
        return .success(withValue: data)
      }
      start(root.child("y")) { data in
        data.value = 3
        return .success(withValue: data)
      }
      start(root) { data in
        let x = data.childData(byAppendingPath: "x").value as? Int ?? 0
        let y = data.childData(byAppendingPath: "y").value as? Int ?? 0
        data.value = ["product": x * y]
        return .success(withValue: data)
      }
      try await eventually { ends.value.count == 3 }
      #expect(ends.value == [true, true, true])
      #expect(try await served.reference().getData().node == node(#"{"product":60}"#))
      try await database.close()
    }
  }

  @Test("a transaction aborts, fails with its block, or is overwritten by a later write")
  func endsOfTransactions() async throws {
    try await serving { served, server in
      let database = synced(Int(server.port))
      let ref = database.reference(withPath: "a")
      _ = try await ref.setValue(1)
      let (committed, snapshot) = try await ref.runTransactionBlock { _ in .abort() }
      #expect(!committed && snapshot.exists() == (snapshot.value as? Int == 1))
      struct Refusal: Error {}
      await #expect(throws: Refusal.self) {
        try await ref.transaction { _ in throw Refusal() }
      }
      database.goOffline()
      let error = Mutex<(any Error)?>(nil)
      ref.runTransactionBlock({ data in
        data.value = 2
        return .success(withValue: data)
      }) { failure, _, _ in error.withLock { $0 = failure } }
      // Its block has run once its result shows.
      let viewer = Viewer(database)
      viewer.listen("v", ref)
      _ = try await viewer.take(1)
      ref.setValue(3, withCompletionBlock: { _, _ in })
      await database.waitForPendingEvents()
      #expect((error.value as? DatabaseError)?.name == "set")
      database.goOnline()
      try await database.waitForPendingWrites()
      #expect(try await served.reference(withPath: "a").getData().value as? Int == 3)
      try await database.close()
    }
  }

  // MARK: Disconnecting, identity, info

  @Test("the server writes what was registered once the client has left, and the client shows it")
  func disconnecting() async throws {
    try await serving { served, server in
      let database = synced(Int(server.port))
      let ref = database.reference(withPath: "here")
      let viewer = Viewer(database)
      viewer.listen("v", ref)
      _ = try await viewer.take(1)
      try await ref.child("ann").onDisconnectSetValue("away")
      try await ref.child("bob").onDisconnectSetValue("away")
      try await ref.child("bob").cancelDisconnectOperations()
      _ = try await ref.child("ann").setValue("here")
      database.goOffline()
      try await eventually {
        try await served.reference(withPath: "here/ann").getData().value as? String == "away"
      }
      try await eventually {
        try await ref.child("ann").getData().value as? String == "away"
      }
      #expect(
        try await served.reference(withPath: "here").getData().node == node(#"{"ann":"away"}"#))
      try await database.close()
    }
  }

  @Test(".info says whether there is a connection, and whether a user is signed in")
  func info() async throws {
    try await serving { served, server in
      let database = synced(Int(server.port))
      let states = Mutex<[Bool]>([])
      database.reference(withPath: ".info/connected").observe(.value) { snapshot in
        states.withLock { $0.append(snapshot.value as? Bool ?? false) }
      }
      try await eventually { states.value.last == true }
      database.goOffline()
      try await eventually { states.value.last == false }
      database.goOnline()
      try await eventually { states.value.last == true }
      let offset = try await database.reference(withPath: ".info/serverTimeOffset").getData()
      #expect(abs(offset.value as? Int ?? .max) < 60_000)
      #expect(
        await failure { _ = try await database.reference(withPath: ".info/x").setValue(1) }?.code
          == .notWritable)
      try await database.close()
    }
  }

  @Test(
    "a client signs in before anything else, again after each loss, and with a new token if one is refused"
  )
  func identity() async throws {
    let rules = try Rules(
      #"{"rules":{"users":{"$user":{".read":"auth.uid == $user",".write":"auth.uid == $user"}}}}"#)
    try await serving { options in
      options.rules = rules
      options.trustsUnsignedTokens = true
    } _: { served, server in
      let database = synced(Int(server.port))
      let asked = Mutex(0)
      try database.authenticate {
        let number = asked.withLock { count in
          count += 1
          return count
        }
        return .user(number == 1 ? "no token" : unsignedToken("ann"))
      }
      _ = try await database.reference(withPath: "users/ann").setValue(1)
      #expect(asked.value == 2)
      #expect(
        await failure { _ = try await database.reference(withPath: "users/bob").setValue(1) }?.code
          == .permissionDenied)
      database.goOffline()
      database.goOnline()
      _ = try await database.reference(withPath: "users/ann").setValue(2)
      #expect(
        try await database.reference(withPath: ".info/authenticated").getData().value as? Bool
          == true)
      try database.authenticate(with: nil)
      #expect(
        await failure { _ = try await database.reference(withPath: "users/ann").setValue(3) }?.code
          == .permissionDenied)
      try await database.close()
    }
  }

  @Test("writes wait for a token that takes its time, and the connection too")
  func slowToken() async throws {
    let rules = try Rules(#"{"rules":{".write":"auth.uid == 'ann'",".read":true}}"#)
    try await serving { options in
      options.rules = rules
      options.trustsUnsignedTokens = true
    } _: { _, server in
      let database = synced(Int(server.port))
      let (tokens, giver) = AsyncStream.makeStream(of: String.self)
      try database.authenticate {
        for await token in tokens { return .user(token) }
        throw CancellationError()
      }
      async let write: DatabaseReference = database.reference(withPath: "a").setValue(1)
      giver.yield(unsignedToken("ann"))
      _ = try await write
      try await database.close()
    }
  }

  @Test("another server may be named until the first use, and only then is one connected to")
  func naming() async throws {
    let server = try ScriptedServer()
    let made = Mutex(0)
    let port = server.port
    let address = RemoteAddress(isSecure: false, host: "127.0.0.1", port: port, namespace: nil)
    let database = Database.remote(RemoteSetup(address), options: DatabaseOptions()) {
      setup, observer in
      made.withLock { $0 += 1 }
      return SyncClient(setup, observer)
    }
    _ = database.reference(withPath: "a")
    #expect(made.value == 0)
    // A program that waits for a connection before it does anything else would wait for ever.
    #expect(
      try await database.reference(withPath: ".info/connected").getData().value as? Bool == false)
    try server.accept()
    #expect(made.value == 1)
    try await database.close()
  }

  // MARK: Events

  @Test("the 400 event scripts of the official SDK, written at the server and seen by a client")
  func eventScripts() async throws {
    let folder = #filePath.split(separator: "/").dropLast(2).joined(separator: "/")
    let text = try String(
      contentsOfFile: "/\(folder)/DendroTests/Fixtures/events.jsonl", encoding: .utf8)
    let lines = text.split(separator: "\n")
    #expect(lines.count == 400)
    let stride = Scale.stride(7)
    for (number, line) in lines.enumerated() where number.isMultiple(of: stride) {
      try await serving { served, server in
        let database = synced(Int(server.port))
        let script = try EventScript(line)
        try await script.run(
          "line \(number + 1)", writing: served.reference(), reading: database)
        try await database.close()
      }
    }
  }
}

func node(_ text: String) throws -> Node { try JSONParser.parse(text) }

/// The error that `body` throws.
func failure(_ body: () async throws -> Void) async -> DatabaseError? {
  do {
    try await body()
    return nil
  } catch {
    return error as? DatabaseError
  }
}

/// A token of a user, which is not signed.
func unsignedToken(_ user: String) -> String {
  ["{\"alg\":\"none\",\"typ\":\"JWT\"}", "{\"sub\":\"\(user)\"}"].map { text in
    Data(text.utf8).base64EncodedString().replacing("=", with: "")
      .replacing("+", with: "-").replacing("/", with: "_")
  }.joined(separator: ".") + "."
}
