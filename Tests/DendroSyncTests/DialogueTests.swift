import Dendro
import DendroTree
import Testing

/// The dialogues of the SDKs' protocol, played by a server that holds each message of the client against the recorded text.
@Suite("synced databases: dialogues")
struct DialogueTests {
  private let server: ScriptedServer
  private let database: Database
  private let viewer: Viewer

  init() throws {
    server = try ScriptedServer()
    database = synced(server.port, connects: false)
    viewer = Viewer(database)
  }

  private func reference(_ path: String) -> DatabaseReference { database.reference(withPath: path) }

  /// Plays lines: `>` is what the client must send now, to the byte, and `<` what the server says.
  private func play(_ lines: String...) throws {
    for line in lines {
      let text = String(line.dropFirst(2))
      if line.hasPrefix(">") {
        let sent = String(decoding: try server.nextText(), as: UTF8.self)
        #expect(sent == text)
      } else {
        try server.send(text)
      }
    }
  }

  /// Takes the first connection: the client says nothing before the server, and then names its software.
  private func connect() throws {
    database.goOnline()
    try server.accept()
    try play(
      #"> {"t":"d","d":{"r":1,"a":"s","b":{"c":{"sdk.dendro.0-1-0":1}}}}"#,
      #"< {"t":"d","d":{"r":1,"b":{"s":"ok","d":""}}}"#)
  }

  /// The events of the listeners since the last call, as of all that the server has said. The client has nothing to say.
  private func events() async throws -> [String: [Seen]] {
    #expect(try server.settled().isEmpty)
    return await viewer.take()
  }

  /// A write whose completion the test waits for.
  private func answer(
    _ write: (@escaping @Sendable ((any Error)?, DatabaseReference) -> Void) -> Void
  ) -> AsyncStream<DatabaseError?> {
    let (answers, teller) = AsyncStream.makeStream(of: DatabaseError?.self)
    write { error, _ in
      teller.yield(error as? DatabaseError)
      teller.finish()
    }
    return answers
  }

  private func name(_ answers: AsyncStream<DatabaseError?>) async -> String {
    for await error in answers { return error?.name ?? "ok" }
    return "nothing"
  }

  @Test("an empty location, then a write of another client")
  func emptyLocation() async throws {
    try connect()
    viewer.listen("a", reference("a"))
    try play(
      #"> {"t":"d","d":{"r":2,"a":"q","b":{"p":"/a","h":""}}}"#,
      #"< {"t":"d","d":{"r":2,"b":{"s":"ok","d":{}}}}"#)
    #expect(try await events() == ["a": [.value(.empty)]])
    try play(#"< {"t":"d","d":{"a":"d","b":{"p":"a","d":{"x":1}}}}"#)
    #expect(
      try await events() == [
        "a": [
          .child(.childAdded, key: "x", try node("1"), previous: nil),
          .value(try node(#"{"x":1}"#)),
        ]
      ])
    viewer.unlisten("a")
    try play(
      #"> {"t":"d","d":{"r":3,"a":"n","b":{"p":"/a"}}}"#,
      #"< {"t":"d","d":{"r":3,"b":{"s":"ok","d":""}}}"#)
    try await database.close()
  }

  @Test("what the client has already is not sent again")
  func cached() async throws {
    try connect()
    viewer.listen("n", reference("n"))
    try play(
      #"> {"t":"d","d":{"r":2,"a":"q","b":{"p":"/n","h":""}}}"#,
      #"< {"t":"d","d":{"a":"d","b":{"p":"n","d":10}}}"#,
      #"< {"t":"d","d":{"r":2,"b":{"s":"ok","d":{}}}}"#)
    #expect(try await events() == ["n": [.value(try node("10"))]])
    // The line is cut, and the client comes again.
    try server.accept()
    try play(
      #"> {"t":"d","d":{"r":3,"a":"q","b":{"p":"/n","h":"+r5aI9HvKKagELki8SYKBk0q7D4="}}}"#,
      #"< {"t":"d","d":{"r":3,"b":{"s":"ok","d":{}}}}"#)
    #expect(try await events() == [:])
    try play(#"< {"t":"d","d":{"a":"d","b":{"p":"n","d":11}}}"#)
    #expect(try await events() == ["n": [.value(try node("11"))]])
    try await database.close()
  }

  @Test("an own write shows at once; its push and its answer change nothing")
  func ownWrite() async throws {
    try connect()
    viewer.listen("a", reference("a"))
    try play(
      #"> {"t":"d","d":{"r":2,"a":"q","b":{"p":"/a","h":""}}}"#,
      #"< {"t":"d","d":{"a":"d","b":{"p":"a","d":{"x":1}}}}"#,
      #"< {"t":"d","d":{"r":2,"b":{"s":"ok","d":{}}}}"#)
    _ = try await events()
    let answers = answer { reference("a/x").setValue(2, withCompletionBlock: $0) }
    #expect(
      await viewer.take() == [
        "a": [
          .child(.childChanged, key: "x", try node("2"), previous: nil),
          .value(try node(#"{"x":2}"#)),
        ]
      ])
    try play(
      #"> {"t":"d","d":{"r":3,"a":"p","b":{"p":"/a/x","d":2}}}"#,
      #"< {"t":"d","d":{"a":"d","b":{"p":"a/x","d":2}}}"#,
      #"< {"t":"d","d":{"r":3,"b":{"s":"ok","d":""}}}"#)
    #expect(await name(answers) == "ok")
    #expect(try await events() == [:])
    try await database.close()
  }

  @Test("a window of two, last by value", arguments: [false, true])
  func window(isIndexed: Bool) async throws {
    try connect()
    viewer.listen("s", reference("s").queryOrderedByValue().queryLimited(toLast: 2))
    try play(
      #"> {"t":"d","d":{"r":2,"a":"q","b":{"p":"/s","q":{"l":2,"vf":"r","i":".value"},"t":1,"h":""}}}"#
    )
    if isIndexed {
      try play(
        #"< {"t":"d","d":{"a":"d","b":{"p":"s","d":{"b":2,"c":3},"t":1}}}"#,
        #"< {"t":"d","d":{"r":2,"b":{"s":"ok","d":{}}}}"#)
    } else {
      // The whole of it may come.
      try play(
        #"< {"t":"d","d":{"a":"d","b":{"p":"s","d":{"a":1,"b":2,"c":3},"t":1}}}"#,
        #"< {"t":"d","d":{"r":2,"b":{"s":"ok","d":{"w":["no_index"]}}}}"#)
    }
    #expect(
      try await events() == [
        "s": [
          .child(.childAdded, key: "b", try node("2"), previous: nil),
          .child(.childAdded, key: "c", try node("3"), previous: "b"),
          .value(try node(#"{"b":2,"c":3}"#)),
        ]
      ])
    reference("s/d").setValue(9, withCompletionBlock: { _, _ in })
    try play(
      #"> {"t":"d","d":{"r":3,"a":"p","b":{"p":"/s/d","d":9}}}"#,
      #"< {"t":"d","d":{"a":"m","b":{"p":"s","d":{"d":9,"b":null},"t":1}}}"#,
      #"< {"t":"d","d":{"r":3,"b":{"s":"ok","d":""}}}"#)
    #expect(
      try await events() == [
        "s": [
          .child(.childRemoved, key: "b", try node("2"), previous: nil),
          .child(.childAdded, key: "d", try node("9"), previous: "c"),
          .value(try node(#"{"c":3,"d":9}"#)),
        ]
      ])
    reference("s/c").removeValue(completionBlock: { _, _ in })
    try play(
      #"> {"t":"d","d":{"r":4,"a":"p","b":{"p":"/s/c","d":null}}}"#,
      #"< {"t":"d","d":{"a":"m","b":{"p":"s","d":{"c":null,"b":2},"t":1}}}"#,
      #"< {"t":"d","d":{"r":4,"b":{"s":"ok","d":""}}}"#)
    let seen = try await events()["s"] ?? []
    #expect(seen.contains(.child(.childRemoved, key: "c", try node("3"), previous: nil)))
    #expect(seen.contains(.child(.childAdded, key: "b", try node("2"), previous: nil)))
    #expect(seen.last == .value(try node(#"{"b":2,"d":9}"#)))
    viewer.unlisten("s")
    try play(
      #"> {"t":"d","d":{"r":5,"a":"n","b":{"p":"/s","q":{"l":2,"vf":"r","i":".value"},"t":1}}}"#)
    try await database.close()
  }

  @Test("a transaction sends what it was made of, and runs again if the server has other data")
  func transaction() async throws {
    try connect()
    viewer.listen("n", reference("n"))
    try play(
      #"> {"t":"d","d":{"r":2,"a":"q","b":{"p":"/n","h":""}}}"#,
      #"< {"t":"d","d":{"a":"d","b":{"p":"n","d":10}}}"#,
      #"< {"t":"d","d":{"r":2,"b":{"s":"ok","d":{}}}}"#)
    #expect(try await events() == ["n": [.value(try node("10"))]])
    let (ends, teller) = AsyncStream.makeStream(of: Int?.self)
    let addOne: @Sendable () -> Void = { [database] in
      database.reference(withPath: "n").runTransactionBlock({ data in
        data.value = (data.value as? Int ?? 0) + 1
        return .success(withValue: data)
      }) { _, isCommitted, snapshot in
        teller.yield(isCommitted ? snapshot?.value as? Int : nil)
      }
    }
    var end = ends.makeAsyncIterator()
    addOne()
    try play(
      #"> {"t":"d","d":{"r":3,"a":"p","b":{"p":"/n","d":11,"h":"+r5aI9HvKKagELki8SYKBk0q7D4="}}}"#,
      #"< {"t":"d","d":{"a":"d","b":{"p":"n","d":11}}}"#,
      #"< {"t":"d","d":{"r":3,"b":{"s":"ok","d":""}}}"#)
    #expect(await end.next() == 11)
    // Another client has written 10 again, which this one does not know yet.
    addOne()
    try play(
      #"> {"t":"d","d":{"r":4,"a":"p","b":{"p":"/n","d":12,"h":"+aUUrIPmWZcSiV4ocCSLYRSFawE="}}}"#,
      #"< {"t":"d","d":{"a":"d","b":{"p":"n","d":10}}}"#,
      #"< {"t":"d","d":{"r":4,"b":{"s":"datastale","d":"Transaction hash does not match"}}}"#,
      #"> {"t":"d","d":{"r":5,"a":"p","b":{"p":"/n","d":11,"h":"+r5aI9HvKKagELki8SYKBk0q7D4="}}}"#,
      #"< {"t":"d","d":{"a":"d","b":{"p":"n","d":11}}}"#,
      #"< {"t":"d","d":{"r":5,"b":{"s":"ok","d":""}}}"#)
    #expect(await end.next() == 11)
    #expect(try await events()["n"]?.last == .value(try node("11")))
    try await database.close()
  }

  @Test("what the server refuses")
  func refused() async throws {
    try connect()
    viewer.listen("z", reference("z"))
    try play(
      #"> {"t":"d","d":{"r":2,"a":"q","b":{"p":"/z","h":""}}}"#,
      #"< {"t":"d","d":{"r":2,"b":{"s":"permission_denied","d":"Permission denied"}}}"#)
    #expect(try await events() == ["z": [.cancelled]])
    let answers = answer { reference("z").setValue(1, withCompletionBlock: $0) }
    try play(
      #"> {"t":"d","d":{"r":3,"a":"p","b":{"p":"/z","d":1}}}"#,
      #"< {"t":"d","d":{"r":3,"b":{"s":"permission_denied","d":"Permission denied"}}}"#)
    #expect(await name(answers) == "permission_denied")
    try await database.close()
  }

  @Test(
    "what the server is to do when this client has gone, and what that looks like to another one")
  func onDisconnect() async throws {
    try connect()
    let registered = answer {
      reference("here/me").onDisconnectRemoveValue(completionBlock: $0)
    }
    let written = answer { reference("here/me").setValue(true, withCompletionBlock: $0) }
    viewer.listen("here", reference("here"))
    try play(
      #"> {"t":"d","d":{"r":2,"a":"o","b":{"p":"/here/me","d":null}}}"#,
      #"> {"t":"d","d":{"r":3,"a":"p","b":{"p":"/here/me","d":true}}}"#,
      #"> {"t":"d","d":{"r":4,"a":"q","b":{"p":"/here","h":""}}}"#,
      #"< {"t":"d","d":{"r":2,"b":{"s":"ok","d":""}}}"#,
      #"< {"t":"d","d":{"r":3,"b":{"s":"ok","d":""}}}"#,
      #"< {"t":"d","d":{"a":"d","b":{"p":"here","d":{"me":true,"you":true}}}}"#,
      #"< {"t":"d","d":{"r":4,"b":{"s":"ok","d":{}}}}"#)
    #expect(await name(registered) == "ok")
    #expect(await name(written) == "ok")
    #expect(
      try await events()["here"]?.last == .value(try node(#"{"me":true,"you":true}"#)))
    // The other one's line is cut.
    try play(#"< {"t":"d","d":{"a":"d","b":{"p":"here/you","d":null}}}"#)
    #expect(try await events()["here"]?.last == .value(try node(#"{"me":true}"#)))
    // This one's is: it is gone for the others, and so for itself.
    server.cut()
    #expect(
      try await viewer.take(2)["here"]?.last == .value(.empty))
    try server.accept()
    try play(
      #"> {"t":"d","d":{"r":5,"a":"q","b":{"p":"/here","h":""}}}"#,
      #"< {"t":"d","d":{"r":5,"b":{"s":"ok","d":{}}}}"#)
    try await database.close()
  }

  @Test("a long message goes in frames of 16,384 units, behind one with their count, both ways")
  func frames() async throws {
    try connect()
    let text = String(repeating: "é", count: 20_000)
    let answers = answer { reference("long").setValue(text, withCompletionBlock: $0) }
    let message = #"{"t":"d","d":{"r":2,"a":"p","b":{"p":"/long","d":"\#(text)"}}}"#
    let frames = [
      "2", String(message.prefix(16_384)), String(message.dropFirst(16_384)),
    ]
    for frame in frames {
      #expect(String(decoding: try server.nextFrame(), as: UTF8.self) == frame)
    }
    try play(#"< {"t":"d","d":{"r":2,"b":{"s":"ok","d":""}}}"#)
    #expect(await name(answers) == "ok")
    viewer.listen("long", reference("long"))
    try play(#"> {"t":"d","d":{"r":3,"a":"q","b":{"p":"/long","h":""}}}"#)
    let push = #"{"t":"d","d":{"a":"d","b":{"p":"long","d":"\#(text)"}}}"#
    for frame in ["2", String(push.prefix(16_384)), String(push.dropFirst(16_384))] {
      try server.send(0x1, Array(frame.utf8))
    }
    try play(#"< {"t":"d","d":{"r":3,"b":{"s":"ok","d":{}}}}"#)
    #expect(try await events() == ["long": [.value(try node("\"\(text)\""))]])
    try await database.close()
  }

  @Test("keep-alives and answers to pings mean nothing")
  func keepAlive() async throws {
    try connect()
    viewer.listen("a", reference("a"))
    try play(
      "< 0", #"< {"t":"c","d":{"t":"o","d":{}}}"#,
      #"> {"t":"d","d":{"r":2,"a":"q","b":{"p":"/a","h":""}}}"#, "< 0",
      #"< {"t":"d","d":{"r":2,"b":{"s":"ok","d":{}}}}"#, #"< {"t":"c","d":{"t":"o","d":null}}"#)
    #expect(try await events() == ["a": [.value(.empty)]])
    try await database.close()
  }
}
