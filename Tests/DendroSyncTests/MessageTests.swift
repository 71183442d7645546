import Dendro
import Testing

/// What a client sends, held against what the official SDK was recorded to send for the same calls.
@Suite("synced databases: the messages of a client")
struct MessageTests {
  private let server: ScriptedServer
  private let database: Database

  init() throws {
    server = try ScriptedServer()
    database = synced(server.port, connects: false)
  }

  /// Holds the next messages against these, to the byte.
  private func expect(_ messages: [String]) throws {
    for message in messages {
      let sent = String(decoding: try server.nextText(), as: UTF8.self)
      #expect(sent == message)
    }
  }

  /// Takes the connection: the client names its software first.
  private func greet() throws {
    database.goOnline()
    try server.accept()
    try expect([#"{"t":"d","d":{"r":1,"a":"s","b":{"c":{"sdk.dendro.0-1-0":1}}}}"#])
  }

  private func reference(_ path: String) -> DatabaseReference { database.reference(withPath: path) }

  @Test("the head of the request")
  func head() async throws {
    database.goOnline()
    let head = try server.accept()
    #expect(head.hasPrefix("GET /.ws?v=5 HTTP/1.1\r\nHost: 127.0.0.1:\(server.port)\r\n"))
    _ = try server.settled()
    database.goOffline()
    database.goOnline()
    // The client names the session that the server may forget.
    #expect(try server.accept().hasPrefix("GET /.ws?v=5&ls=session HTTP/1.1\r\n"))
    try await database.close()
  }

  @Test("listens, reads and writes")
  func requests() async throws {
    try greet()
    reference("a/b").observe(.value) { _ in }
    reference("list").queryOrdered(byChild: "x/y").queryStarting(atValue: 3, childKey: "k1")
      .queryLimited(toLast: 2).observe(.value) { _ in }
    reference("l2").queryOrderedByKey().queryStarting(afterValue: "k5")
      .queryEnding(beforeValue: "k9").observe(.value) { _ in }
    reference("g/1").getData { _, _ in }
    let done: @Sendable ((any Error)?, DatabaseReference) -> Void = { _, _ in }
    reference("w/1").setValue(
      ["x": 1, "i": ServerValue.increment(5), "t": ServerValue.timestamp()],
      withCompletionBlock: done)
    reference("w/2").setValue("v", andPriority: 7, withCompletionBlock: done)
    reference("w/2").setPriority(8, withCompletionBlock: done)
    reference("w").updateChildValues(["3": NSNull(), "1/x": 2], withCompletionBlock: done)
    reference("w/2").removeValue(completionBlock: done)
    reference("od").onDisconnectSetValue("bye", withCompletionBlock: done)
    reference("od2").onDisconnectUpdateChildValues(["a": 1, "b/c": 2], withCompletionBlock: done)
    reference("od").cancelDisconnectOperations(completionBlock: done)
    // The paths of an update are in their own order, as a dictionary has none; the SDK keeps that of the program.
    try expect([
      #"{"t":"d","d":{"r":2,"a":"q","b":{"p":"/a/b","h":""}}}"#,
      #"{"t":"d","d":{"r":3,"a":"q","b":{"p":"/list","q":{"sp":3,"sn":"k1","sin":true,"l":2,"vf":"r","i":"x/y"},"t":1,"h":""}}}"#,
      #"{"t":"d","d":{"r":4,"a":"q","b":{"p":"/l2","q":{"sp":"k5","sin":false,"ep":"k9","ein":false,"i":".key"},"t":2,"h":""}}}"#,
      #"{"t":"d","d":{"r":5,"a":"g","b":{"p":"/g/1","q":{}}}}"#,
      #"{"t":"d","d":{"r":6,"a":"p","b":{"p":"/w/1","d":{"i":{".sv":{"increment":5}},"t":{".sv":"timestamp"},"x":1}}}}"#,
      #"{"t":"d","d":{"r":7,"a":"p","b":{"p":"/w/2","d":{".value":"v",".priority":7}}}}"#,
      #"{"t":"d","d":{"r":8,"a":"p","b":{"p":"/w/2/.priority","d":8}}}"#,
      #"{"t":"d","d":{"r":9,"a":"m","b":{"p":"/w","d":{"1/x":2,"3":null}}}}"#,
      #"{"t":"d","d":{"r":10,"a":"p","b":{"p":"/w/2","d":null}}}"#,
      #"{"t":"d","d":{"r":11,"a":"o","b":{"p":"/od","d":"bye"}}}"#,
      #"{"t":"d","d":{"r":12,"a":"om","b":{"p":"/od2","d":{"a":1,"b/c":2}}}}"#,
      #"{"t":"d","d":{"r":13,"a":"oc","b":{"p":"/od","d":null}}}"#,
    ])
    try await database.close()
  }

  @Test("a transaction listens, and sends its result with the hash of what it was made of")
  func transaction() async throws {
    try greet()
    reference("tx").runTransactionBlock({ data in
      data.value = (data.value as? Int ?? 0) + 1
      return .success(withValue: data)
    }) { _, _, _ in }
    try expect([
      #"{"t":"d","d":{"r":2,"a":"q","b":{"p":"/tx","h":""}}}"#,
      #"{"t":"d","d":{"r":3,"a":"p","b":{"p":"/tx","d":1,"h":""}}}"#,
    ])
    try server.push("d", #"{"p":"tx","d":10}"#)
    try server.answer(2, data: "{}")
    try server.answer(3, "datastale")
    try expect([
      #"{"t":"d","d":{"r":4,"a":"p","b":{"p":"/tx","d":11,"h":"+r5aI9HvKKagELki8SYKBk0q7D4="}}}"#
    ])
    try server.push("d", #"{"p":"tx","d":11}"#)
    try server.answer(4)
    try expect([#"{"t":"d","d":{"r":5,"a":"n","b":{"p":"/tx"}}}"#])
    try await database.close()
  }

  @Test(
    "signing in comes first, and again over the next connection, before the listens with their hashes"
  )
  func signingIn() async throws {
    // It connects when it has a token, and not before.
    let (asked, teller) = AsyncStream.makeStream(of: Never.self)
    try database.authenticate {
      teller.finish()
      return .administrator("owner")
    }
    // Not while this thread waits: there may be no other one for it.
    for await _ in asked {}
    try server.accept()
    let first = try server.nextText()
    #expect(String(decoding: first, as: UTF8.self).contains(#""a":"s""#))
    try expect([#"{"t":"d","d":{"r":2,"a":"gauth","b":{"cred":"owner"}}}"#])
    try server.answer(2)
    reference("n").observe(.value) { _ in }
    try expect([#"{"t":"d","d":{"r":3,"a":"q","b":{"p":"/n","h":""}}}"#])
    try server.push("d", #"{"p":"n","d":10}"#)
    try server.answer(3, data: "{}")
    _ = try server.settled()
    reference("w").setValue(1, withCompletionBlock: { _, _ in })
    try expect([#"{"t":"d","d":{"r":4,"a":"p","b":{"p":"/w","d":1}}}"#])
    try server.accept()
    try expect([
      #"{"t":"d","d":{"r":5,"a":"gauth","b":{"cred":"owner"}}}"#,
      #"{"t":"d","d":{"r":6,"a":"q","b":{"p":"/n","h":"+r5aI9HvKKagELki8SYKBk0q7D4="}}}"#,
      #"{"t":"d","d":{"r":7,"a":"p","b":{"p":"/w","d":1}}}"#,
    ])
    try await database.close()
  }
}
