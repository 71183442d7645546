import Dendro
import DendroProtocol
import DendroTestSupport
import DendroTree
import Synchronization
import Testing

@testable import DendroSync

/// Writes that are sent again with the same numbers, and what is done if the server cannot tell them apart.
@Suite("synced databases: numbered writes")
struct NumberedWriteTests {
  private static let time = 1_700_000_000_000

  private static func hello(
    _ branch: String, lsn: Int, since: Int = 0, strangers: Int = 0, time: Int = time
  ) -> String {
    """
    {"t":"c","d":{"t":"h","d":{"ts":\(time),"v":"5","h":"h","s":"s",\
    "dendro":{"branch":"\(branch)","lsn":\(lsn),"since":\(since),"strangers":\(strangers)}}}}
    """
  }

  /// The bodies of the next puts.
  private func puts(_ server: ScriptedServer, _ count: Int) throws -> [String] {
    try (0..<count).map { _ in
      while true {
        let request = try server.request()
        guard request.action == "p" else {
          try server.answer(request.number)
          continue
        }
        let body = request.body
        return ["p", "d", "n"].map { body[$0].map { String(decoding: $0, as: UTF8.self) } ?? "-" }
          .joined(separator: " ")
      }
    }
  }

  @Test(
    "what the server has made, and does not tell of a query, shows there no more once it is answered",
    arguments: [false, true])
  func untold(isSentAgain: Bool) async throws {
    let server = try ScriptedServer()
    let database = synced(server.port)
    let viewer = Viewer(database)
    try server.accept(greets: false)
    try server.send(Self.hello("b1", lsn: 5))
    let place = database.reference(withPath: "s")
    viewer.listen("s", place.queryOrdered(byChild: "n").queryStarting(atValue: 100))
    let listen = try server.request()
    #expect(listen.action == "q")
    try server.answer(listen.number, data: "{}")
    place.child("k").setValue(["n": 200], withCompletionBlock: { _, _ in })
    var put = try server.request()
    if isSentAgain {
      try server.accept(greets: false)
      try server.send(Self.hello("b1", lsn: 7))
      let again = try server.request()
      #expect(again.action == "q")
      try server.answer(again.number, data: "{}")
      put = try server.request()
    }
    #expect(put.action == "p")
    _ = try server.settled()
    #expect(await viewer.take()["s"]?.last == .value(try node(#"{"k":{"n":200}}"#)))
    // Another client has overwritten it meanwhile.
    try server.answer(put.number)
    _ = try server.settled()
    #expect(await viewer.take()["s"]?.last == .value(.empty))
    try await database.close()
  }

  @Test(
    "a write shows on in a query whose listen has no answer, since only kept data say that it is not there"
  )
  func unanswered() async throws {
    let folder = try TemporaryFolder()
    let server = try ScriptedServer()
    func query(_ database: Database) -> DatabaseQuery {
      database.reference(withPath: "s").queryOrdered(byChild: "n").queryStarting(atValue: 100)
    }
    let first = try synced(server.port, at: folder.path + "/db")
    query(first).observe(.value) { _ in }
    try server.accept(greets: false)
    try server.send(Self.hello("b1", lsn: 5))
    let listen = try server.request()
    try server.push("d", #"{"p":"s","d":{"a":{"n":150}},"t":1}"#)
    try server.answer(listen.number, data: "{}")
    _ = try server.settled()
    try await first.close()

    let database = try synced(server.port, at: folder.path + "/db")
    let viewer = Viewer(database)
    database.goOnline()
    try server.accept(greets: false)
    try server.send(Self.hello("b1", lsn: 5))
    database.reference(withPath: "s/k").setValue(["n": 200], withCompletionBlock: { _, _ in })
    let put = try server.request()
    #expect(put.action == "p")
    viewer.listen("s", query(database))
    let again = try server.request()
    #expect(again.action == "q")
    let both = Seen.value(try node(#"{"a":{"n":150},"k":{"n":200}}"#))
    _ = try server.settled()
    #expect(await viewer.take()["s"]?.last == both)
    try server.answer(put.number)
    _ = try server.settled()
    #expect(await viewer.take() == [:])
    try server.push("d", #"{"p":"s","d":{"a":{"n":150},"k":{"n":200}},"t":1}"#)
    try server.answer(again.number, data: "{}")
    _ = try server.settled()
    #expect(await viewer.take() == [:])
    try await database.close()
  }

  @Test("a push of a query that is covered by now is late, and narrows nothing")
  func coveredQuery() async throws {
    let server = try ScriptedServer()
    let database = synced(server.port)
    let viewer = Viewer(database)
    let place = database.reference(withPath: "s")
    try server.accept(greets: false)
    try server.send(Self.hello("b1", lsn: 5))
    viewer.listen("two", place.queryOrderedByValue().queryLimited(toFirst: 2))
    let query = try server.request()
    try server.push("d", #"{"p":"s","d":{"a":1,"b":2},"t":1}"#)
    try server.answer(query.number, data: "{}")
    _ = try server.settled()
    viewer.listen("all", place)
    let whole = try server.request()
    let end = try server.request()
    #expect(whole.action == "q" && end.action == "n")
    try server.push("d", #"{"p":"s","d":{"a":1,"b":2,"c":3}}"#)
    try server.answer(whole.number, data: "{}")
    // Another client has written before the server has read of the end.
    try server.push("d", #"{"p":"s/b","d":2.5}"#)
    try server.push("m", #"{"p":"s","d":{"b":2.5},"t":1}"#)
    try server.answer(end.number)
    try server.push("d", #"{"p":"s/a","d":null}"#)
    _ = try server.settled()
    let seen = await viewer.take()
    #expect(seen["two"]?.last == .value(try node(#"{"b":2.5,"c":3}"#)))
    #expect(seen["all"]?.last == .value(try node(#"{"b":2.5,"c":3}"#)))
    try await database.close()
  }

  @Test(
    "a query that another listen covers knows all, also if the server says only that nothing has changed"
  )
  func coveredByAnUnchangedListen() async throws {
    let server = try ScriptedServer()
    let database = synced(server.port)
    let viewer = Viewer(database)
    let place = database.reference(withPath: "s")
    try server.accept(greets: false)
    try server.send(Self.hello("b1", lsn: 5))
    viewer.listen("two", place.queryOrderedByValue().queryLimited(toFirst: 2))
    let query = try server.request()
    try server.push("d", #"{"p":"s","d":null,"t":1}"#)
    try server.answer(query.number, data: "{}")
    _ = try server.settled()
    viewer.listen("all", place)
    let whole = try server.request()
    let end = try server.request()
    #expect(whole.action == "q" && end.action == "n")
    // The hash of nothing fits.
    try server.answer(whole.number, data: "{}")
    try server.answer(end.number)
    for child in [#"a","d":1"#, #"b","d":2"#, #"c","d":3"#, #"a","d":null"#] {
      try server.push("d", "{\"p\":\"s/\(child)}")
    }
    _ = try server.settled()
    let seen = await viewer.take()
    #expect(seen["two"]?.last == .value(try node(#"{"b":2,"c":3}"#)))
    #expect(seen["all"]?.last == .value(try node(#"{"b":2,"c":3}"#)))
    try await database.close()
  }

  @Test(
    "a query whose covering listen has ended knows no other children, also if nothing has changed")
  func uncoveredQuery() async throws {
    let server = try ScriptedServer()
    let database = synced(server.port)
    let viewer = Viewer(database)
    let place = database.reference(withPath: "s")
    try server.accept(greets: false)
    try server.send(Self.hello("b1", lsn: 5))
    let all = place.observe(.value) { _ in }
    let whole = try server.request()
    try server.push("d", #"{"p":"s","d":{"a":{"n":5}}}"#)
    try server.answer(whole.number, data: "{}")
    _ = try server.settled()
    viewer.listen("from 1", place.queryOrdered(byChild: "n").queryStarting(atValue: 1))
    place.removeObserver(withHandle: all)
    let requests = [try server.request(), try server.request()]
    #expect(requests.map(\.action) == ["q", "n"])
    for request in requests { try server.answer(request.number, data: "{}") }
    _ = try server.settled()
    #expect(await viewer.take()["from 1"]?.last == .value(try node(#"{"a":{"n":5}}"#)))
    // Another client has put {"x":1} to c meanwhile, which the query does not show.
    place.updateChildValues(["c/n": 7]) { _, _ in }
    let put = try server.request()
    _ = try server.settled()
    #expect(await viewer.take() == [:])
    try server.push("d", #"{"p":"s/c","d":{"x":1,"n":7},"t":1}"#)
    try server.answer(put.number)
    _ = try server.settled()
    #expect(
      await viewer.take()["from 1"]?.last
        == .value(try node(#"{"a":{"n":5},"c":{"x":1,"n":7}}"#)))
    try await database.close()
  }

  @Test(
    "one whose answer was lost is sent with its number; a server that cannot tell has increments wait for the app"
  )
  func decisions() async throws {
    let folder = try TemporaryFolder()
    let server = try ScriptedServer()
    let database = try synced(server.port, at: folder.path + "/db")
    database.goOnline()
    try server.accept(greets: false)
    try server.send(Self.hello("b1", lsn: 5))
    database.reference(withPath: "n").setValue(ServerValue.increment(1)) { _, _ in }
    database.reference(withPath: "s").setValue(1) { _, _ in }
    let first = try puts(server, 2)
    #expect(first[0].hasPrefix(#""/n" {".sv":{"increment":1}} {"c":""#))
    #expect(first[0].hasSuffix(#""n":1,"l":1}"#) && first[1].hasSuffix(#""n":2,"l":1}"#))
    // The same server: it can tell.
    try server.accept(greets: false)
    try server.send(Self.hello("b1", lsn: 6))
    #expect(try puts(server, 2) == first)
    #expect(try database.pendingWrites().map(\.state) == [.answer, .answer])
    try await database.close()

    let other = try synced(server.port, at: folder.path + "/db")
    other.goOnline()
    try server.accept(greets: false)
    try server.send(Self.hello("b2", lsn: 9))
    #expect(try puts(server, 1) == [first[1]])
    #expect(try other.pendingWrites().map(\.state) == [.decision, .answer])
    try await other.close()

    // What waits goes on waiting, also for a server that could tell by now.
    let last = try synced(server.port, at: folder.path + "/db")
    last.goOnline()
    try server.accept(greets: false)
    try server.send(Self.hello("b2", lsn: 9))
    #expect(try puts(server, 1) == [first[1]])
    try last.pendingWrites()[0].send()
    #expect(try puts(server, 1) == [first[0]])
    #expect(try last.pendingWrites().map(\.state) == [.answer, .answer])
    try last.pendingWrites()[0].drop()
    #expect(try last.pendingWrites().map(\.path) == ["/s"])
    // A new one has the number of this opening.
    last.reference(withPath: "n").setValue(ServerValue.increment(1)) { _, _ in }
    let new = try puts(server, 1)[0]
    #expect(new.hasSuffix(#""n":3,"l":2}"#))
    #expect(new.dropLast(20).suffix(17) != first[0].dropLast(20).suffix(17))
    try await last.close()
  }

  /// A hello after that by which an increment was sent, and whether the increment waits then.
  struct Return: Sendable {
    let name: String
    let hello: String
    let waits: Bool
    var isUser = false
  }

  private static let returns: [Return] = [
    Return(name: "the same", hello: hello("b1", lsn: 6), waits: false),
    Return(name: "another history", hello: hello("b2", lsn: 9), waits: true),
    Return(name: "an older state", hello: hello("b1", lsn: 4), waits: true),
    Return(
      name: "results given back before it was sent",
      hello: hello("b1", lsn: 6, since: time), waits: false),
    Return(
      name: "results given back after it was sent",
      hello: hello("b1", lsn: 6, since: time + 1), waits: true),
    Return(
      name: "results of strangers given back",
      hello: hello("b1", lsn: 6, strangers: time + 1), waits: true),
    Return(
      name: "results of strangers given back, and a user",
      hello: hello("b1", lsn: 6, strangers: time + 1), waits: false, isUser: true),
  ]

  @Test(
    "an increment waits for the app if the server may have forgotten it, and the log says so",
    arguments: returns.indices)
  func waits(index: Int) async throws {
    try await onOwnThread { try await comeBack(to: Self.returns[index]) }
  }

  private func comeBack(to next: Return) async throws {
    let folder = try TemporaryFolder()
    let server = try ScriptedServer()
    let log = Mutex<[String]>([])
    func open() throws -> Database {
      try synced(server.port, at: folder.path + "/db") {
        $0.logging = { message in log.withLock { $0.append("\(message)") } }
      }
    }
    func connect(_ database: Database, _ hello: String) throws {
      if next.isUser { try database.authenticate { .user(unsignedToken("ann")) } }
      database.goOnline()
      try server.accept(greets: false)
      try server.send(hello)
      if next.isUser {
        let signIn = try server.request()
        try #require(signIn.action == "auth")
        try server.answer(signIn.number, data: "{}")
      }
    }
    var database = try open()
    try connect(database, Self.hello("b1", lsn: 5))
    database.reference(withPath: "n").setValue(ServerValue.increment(1)) { _, _ in }
    let first = try puts(server, 1)
    // Another connection, months later, does not say when the increment was sent.
    try server.accept(greets: false)
    try server.send(Self.hello("b1", lsn: 5, time: Self.time + 10_000_000_000))
    if next.isUser {
      let signIn = try server.request()
      try server.answer(signIn.number, data: "{}")
    }
    #expect(try puts(server, 1) == first)
    try await database.close()

    database = try open()
    try connect(database, next.hello)
    if next.waits {
      _ = try server.settled()
      #expect(try database.pendingWrites().map(\.state) == [.decision], "\(next.name)")
    } else {
      #expect(try puts(server, 1) == first, "\(next.name)")
      #expect(try database.pendingWrites().map(\.state) == [.answer], "\(next.name)")
    }
    try await database.close()
    let lines = log.withLock {
      $0.filter { $0.contains("cannot tell whether it has made write 1") }
    }
    #expect(lines.count == (next.waits ? 1 : 0), "\(next.name)")
  }

  @Test(
    "writes are sent once the server has taken the token, and nobody's not before it knows that nobody is there"
  )
  func users() async throws {
    try await onOwnThread { try await changeUsers() }
  }

  private func changeUsers() async throws {
    let server = try ScriptedServer()
    let database = synced(server.port, connects: false)
    try database.authenticate { .user(unsignedToken("ann")) }
    database.reference(withPath: "a").setValue(1) { _, _ in }
    try server.accept(greets: false)
    try server.send(Self.hello("b1", lsn: 5))
    let signIn = try server.request()
    #expect(signIn.action == "auth")
    #expect(try server.settled().isEmpty, "not with the rights of nobody")
    try server.answer(signIn.number, data: "{}")
    #expect(try puts(server, 1)[0].hasPrefix(#""/a" 1"#))
    database.reference(withPath: "b").setValue(2) { _, _ in }
    #expect(try puts(server, 1)[0].hasPrefix(#""/b" 2"#))
    // Nobody is signed in: what ann has made waits, and what comes is nobody's.
    try database.authenticate(with: nil)
    database.reference(withPath: "c").setValue(3) { _, _ in }
    #expect(try server.request().action == "unauth")
    #expect(try puts(server, 1)[0].hasPrefix(#""/c" 3"#))
    #expect(try database.pendingWrites().map(\.userID) == ["ann", "ann", nil])
    #expect(try database.pendingWrites().map(\.state) == [.user, .user, .answer])
    // Over the connection that is nobody's nothing of hers goes.
    try database.authenticate { .user(unsignedToken("ann")) }
    try server.accept(greets: false)
    try server.send(Self.hello("b1", lsn: 5))
    let again = try server.request()
    #expect(again.action == "auth")
    #expect(try server.settled().isEmpty)
    try server.answer(again.number, data: "{}")
    #expect(try puts(server, 2).map { $0.prefix(6) } == [#""/a" 1"#, #""/b" 2"#])
    try await database.close()
  }

  @Test("a server that cannot write now is asked again, over another connection")
  func unavailable() async throws {
    let server = try ScriptedServer()
    let database = synced(server.port)
    try server.accept(greets: false)
    try server.send(Self.hello("b1", lsn: 5))
    let outcome = Mutex<[String]>([])
    database.reference(withPath: "n").setValue(1) { error, _ in
      outcome.withLock { $0.append("\(error.map { "\($0)" } ?? "ok")") }
    }
    let put = try server.request()
    #expect(put.action == "p")
    try server.answer(put.number, "unavailable", data: "\"the disk is full\"")
    try server.accept(greets: false)
    try server.send(Self.hello("b1", lsn: 5))
    let again = try server.request()
    #expect(again.body["n"] == put.body["n"])
    try server.answer(again.number)
    try await database.waitForPendingWrites()
    await database.waitForPendingEvents()
    #expect(outcome.value == ["ok"])
    try await database.close()
  }

  @Test("a transaction is sent again with its number, and ends if the server cannot tell")
  func transactions() async throws {
    let server = try ScriptedServer()
    let database = synced(server.port)
    try server.accept(greets: false)
    try server.send(Self.hello("b1", lsn: 5))
    let outcome = Mutex<[String]>([])
    let transact = {
      database.reference(withPath: "t").runTransactionBlock({ data in
        data.value = (data.value as? Int ?? 0) + 1
        return .success(withValue: data)
      }) { error, _, snapshot in
        let name = (error as? DatabaseError)?.name
        outcome.withLock { $0.append(name ?? "\(snapshot?.value ?? 0)") }
      }
    }
    /// The next put, once what is listened to is answered.
    let put = { () throws -> (number: Int64, action: String, body: JSONMembers) in
      while true {
        let request = try server.request()
        if request.action == "p" { return request }
        try server.answer(request.number, data: "{}")
      }
    }
    let same = {
      (
        one: (number: Int64, action: String, body: JSONMembers),
        other: (number: Int64, action: String, body: JSONMembers)
      ) in
      ["p", "d", "h", "n"].allSatisfy { one.body[$0] == other.body[$0] }
    }
    transact()
    let first = try put()
    #expect(first.body["n"] != nil && first.body.string("h") == "")
    try server.accept(greets: false)
    try server.send(Self.hello("b1", lsn: 5))
    let second = try put()
    #expect(same(first, second))
    try server.push("d", #"{"p":"t","d":1}"#)
    try server.answer(second.number)
    try await eventually { outcome.value == ["1"] }
    // One that the server has not made ends with what the server says.
    transact()
    try server.answer(put().number, "unavailable", data: "\"the disk is full\"")
    try await eventually { outcome.value == ["1", "unavailable"] }
    transact()
    #expect(try !same(first, put()))
    try server.accept(greets: false)
    try server.send(Self.hello("b2", lsn: 5))
    try await eventually { outcome.value == ["1", "unavailable", "disconnect"] }
    try await database.close()
  }

  @Test("what was never sent does not wait for the app")
  func neverSent() async throws {
    let folder = try TemporaryFolder()
    let server = try ScriptedServer()
    do {
      let database = try synced(server.port, at: folder.path + "/db")
      database.goOffline()
      database.reference(withPath: "n").setValue(ServerValue.increment(1)) { _, _ in }
      try await database.close()
    }
    let database = try synced(server.port, at: folder.path + "/db")
    database.goOnline()
    try server.accept(greets: false)
    try server.send(Self.hello("b1", lsn: 5))
    #expect(try puts(server, 1)[0].hasSuffix(#""n":1,"l":1}"#))
    try await database.close()
  }

  @Test("a server that does not ask for numbers gets none")
  func otherServers() async throws {
    let server = try ScriptedServer()
    let database = synced(server.port)
    try server.accept()
    database.reference(withPath: "n").setValue(ServerValue.increment(1)) { _, _ in }
    #expect(try puts(server, 1) == [#""/n" {".sv":{"increment":1}} -"#])
    try await database.close()
  }
}
