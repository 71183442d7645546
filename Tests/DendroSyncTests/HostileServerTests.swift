import Dendro
import DendroTestSupport
import DendroTree
import Foundation
import Testing

@testable import DendroSync

/// Servers that lie, are silent, or send what no server sends.
@Suite("synced databases: hostile servers")
struct HostileServerTests {
  @Test(
    "what no server sends ends the connection, and the next one goes on",
    arguments: [
      "no json", "[]", "{\"t\":\"x\"}", "{\"t\":\"x\",\"d\":{}}",
      "{\"t\":\"d\",\"d\":{\"a\":\"d\"}}",
      "{\"t\":\"d\",\"d\":{\"a\":\"d\",\"b\":{\"d\":1}}}",
      "{\"t\":\"d\",\"d\":{\"a\":\"d\",\"b\":{\"p\":\"a\",\"d\":{\"x$\":1}}}}",
      "{\"t\":\"d\",\"d\":{\"a\":\"m\",\"b\":{\"p\":\"a\",\"d\":7}}}",
      "{\"t\":\"c\",\"d\":{\"t\":\"h\",\"d\":{}}}",
      // Deeper than data can be.
      "{\"t\":\"d\",\"d\":{\"a\":\"m\",\"b\":{\"p\":\"a\",\"d\":{\""
        + String(repeating: "x/", count: 100_000) + "x\":1}}}}",
      "{\"t\":\"d\",\"d\":{\"a\":\"d\",\"b\":{\"p\":\"a/.priority\",\"d\":true}}}",
      "{\"t\":\"d\",\"d\":{\"a\":\"d\",\"b\":{\"p\":\"a\",\"d\":"
        + String(repeating: "[", count: 100_000) + String(repeating: "]", count: 100_000) + "}}}",
    ])
  func nonsense(text: String) async throws {
    let server = try ScriptedServer()
    let database = synced(server.port)
    try server.accept()
    let viewer = Viewer(database)
    viewer.listen("v", database.reference(withPath: "a"))
    _ = try server.request()
    try server.together {
      try server.send(text)
      // What comes behind it does not count.
      try server.push("d", "{\"p\":\"a\",\"d\":2}")
    }
    try server.accept()
    let (number, action, _) = try server.request()
    #expect(action == "q")
    try server.push("d", "{\"p\":\"a\",\"d\":1}")
    try server.answer(number)
    #expect(try await viewer.take(1) == ["v": [.value(try node("1"))]])
    try await database.close()
  }

  @Test(
    "what means nothing to the client changes nothing",
    arguments: [
      // Of no listen, of no request, of no query, of a kind that is not known.
      "{\"t\":\"d\",\"d\":{\"a\":\"d\",\"b\":{\"p\":\"other\",\"d\":1}}}",
      "{\"t\":\"d\",\"d\":{\"a\":\"d\",\"b\":{\"p\":\"a\",\"d\":1,\"t\":77}}}",
      "{\"t\":\"d\",\"d\":{\"r\":999,\"b\":{\"s\":\"ok\",\"d\":\"\"}}}",
      "{\"t\":\"d\",\"d\":{\"a\":\"zz\",\"b\":{\"p\":\"a\"}}}",
      "{\"t\":\"c\",\"d\":{\"t\":\"o\",\"d\":null}}",
      "{\"t\":\"c\",\"d\":{\"t\":\"e\",\"d\":\"oh\"}}",
      "{\"t\":\"d\",\"d\":{\"a\":\"sd\",\"b\":{\"msg\":\"hello\"}}}",
      "{\"t\":\"d\",\"d\":{\"a\":\"c\",\"b\":{\"p\":\"elsewhere\"}}}", "0",
    ])
  func meaningless(text: String) async throws {
    let server = try ScriptedServer()
    let database = synced(server.port)
    try server.accept()
    let viewer = Viewer(database)
    viewer.listen("v", database.reference(withPath: "a"))
    let (number, _, _) = try server.request()
    try server.answer(number)
    #expect(try await viewer.take(1) == ["v": [.value(.empty)]])
    if text == "0" {
      // A keep-alive, which is a message of no parts.
      try server.send(0x1, Array("0".utf8))
    } else {
      try server.send(text)
    }
    _ = try server.settled()
    #expect(await viewer.take() == [:])
    try server.push("d", "{\"p\":\"a\",\"d\":2}")
    #expect(try await viewer.take(1) == ["v": [.value(try node("2"))]])
    try await database.close()
  }

  @Test("lines that are cut within the answer to the upgrade, within a frame and before the hello")
  func cut() async throws {
    let server = try ScriptedServer()
    let database = synced(server.port)
    database.reference(withPath: "a").setValue(1, withCompletionBlock: { _, _ in })
    // Each is tried again at once, and then within a second: the delays begin anew.
    try server.accept(greets: false)
    database.goOnline()
    try server.accept(greets: false)
    try server.send(0x1, Array("{\"t\":\"c\"".utf8))
    database.goOnline()
    try server.accept()
    let (number, action, _) = try server.request()
    #expect(action == "p")
    try server.answer(number)
    try await database.waitForPendingWrites()
    try await database.close()
  }

  @Test("a server that sends the client in circles is left, and found again")
  func circles() async throws {
    let server = try ScriptedServer()
    let database = synced(server.port)
    database.reference(withPath: "a").setValue(1, withCompletionBlock: { _, _ in })
    for _ in 0..<8 {
      try server.accept(greets: false)
      try server.send(
        #"{"t":"c","d":{"t":"r","d":"127.0.0.1:\#(server.port)"}}"#)
      database.goOnline()
    }
    try server.accept()
    let (number, _, _) = try server.request()
    try server.answer(number)
    try await database.waitForPendingWrites()
    try await database.close()
  }

  @Test(
    "a client that servers redirect in a circle goes back to its own server, and ignores the next redirect"
  )
  func circleOfOthers() async throws {
    let own = try ScriptedServer()
    let (a, b) = (try ScriptedServer(), try ScriptedServer())
    // It does not come back by itself from a server that is silent.
    var limits = SyncLimits()
    limits.connectTimeout = .seconds(600)
    let database = synced(own.port, limits: limits)
    database.reference(withPath: "a").setValue(1, withCompletionBlock: { _, _ in })
    // Five times it goes where it is sent, and not the sixth time.
    let ways = [(own, a), (a, b), (b, a), (a, b), (b, a), (a, b), (own, a)]
    for (server, target) in ways {
      try server.accept(greets: false)
      try server.send(#"{"t":"c","d":{"t":"r","d":"127.0.0.1:\#(target.port)"}}"#)
    }
    try own.accept()
    let (number, _, _) = try own.request()
    try own.answer(number)
    try await database.waitForPendingWrites()
    try await database.close()
  }

  @Test("a server that is sent away for good is connected to again only when the program says so")
  func shutDown() async throws {
    let server = try ScriptedServer()
    let database = synced(server.port)
    database.reference(withPath: "a").setValue(1, withCompletionBlock: { _, _ in })
    try server.accept()
    let first = try server.request()
    try server.together {
      try server.send(#"{"t":"c","d":{"t":"s","d":"maintenance"}}"#)
      try server.answer(first.number)
    }
    #expect(throws: ScriptedServer.Failure.self) { _ = try server.request() }
    #expect(try database.pendingWrites().count == 1)
    database.goOnline()
    try server.accept()
    let again = try server.request()
    #expect(again.action == "p")
    try server.answer(again.number)
    try await database.waitForPendingWrites()
    try await database.close()
  }

  @Test("a clock that is years off moves estimates of times alone")
  func clocks() async throws {
    let server = try ScriptedServer()
    let database = synced(server.port)
    let later: Int64 = 4_000_000_000_000
    try server.accept(time: later)
    try await eventually {
      try await database.reference(withPath: ".info/connected").getData().value as? Bool == true
    }
    let viewer = Viewer(database)
    viewer.listen("v", database.reference(withPath: "t"))
    database.reference(withPath: "t").setValue(
      ServerValue.timestamp(), withCompletionBlock: { _, _ in })
    let seen = try await viewer.take(1)
    guard case .value(let time)? = seen["v"]?.first, case .integer(let milliseconds)? = time.scalar
    else {
      Issue.record("\(seen)")
      return
    }
    #expect((later...later + 600_000).contains(milliseconds))
    try await database.close()
  }

  @Test(
    "a clock that no server has ends the connection",
    arguments: [Int64.min, .max, 8_640_000_000_000_001])
  func impossibleClocks(time: Int64) async throws {
    let server = try ScriptedServer()
    let database = synced(server.port)
    try server.accept(time: time)
    try server.accept(time: 8_640_000_000_000_000)
    database.reference(withPath: "t").setValue(
      ServerValue.timestamp(), withCompletionBlock: { _, _ in })
    let (number, _, _) = try server.request()
    try server.answer(number)
    try await database.waitForPendingWrites()
    try await database.close()
  }

  @Test(
    "a server that breaks the protocol of WebSockets is left at once",
    arguments: [[0x81, 0x02, 0xFF, 0xFE], [0xF1, 0x01, 0x20], [0x83, 0x00]] as [[UInt8]])
  func brokenFrames(frame: [UInt8]) async throws {
    let server = try ScriptedServer()
    let database = synced(server.port)
    try server.accept()
    let viewer = Viewer(database)
    viewer.listen("v", database.reference(withPath: "a"))
    _ = try server.request()
    try server.write(frame)
    try server.accept()
    let (number, _, _) = try server.request()
    try server.answer(number)
    #expect(try await viewer.take(1) == ["v": [.value(.empty)]])
    try await database.close()
  }

  @Test("an answer to a read that is no value fails the read")
  func brokenRead() async throws {
    // What it waits for needs the threads of the pool.
    try await onOwnThread {
      let server = try ScriptedServer()
      let database = synced(server.port)
      let read = Task {
        await failure { _ = try await database.reference(withPath: "a").getData() }
      }
      try server.accept()
      let (number, action, _) = try server.request()
      #expect(action == "g")
      try server.answer(number, data: "{\"x$\":1}")
      #expect(await read.value?.code == .unavailable)
      try await database.close()
    }
  }

  @Test("an update of more children than a request may have members")
  func longUpdate() async throws {
    let server = try ScriptedServer()
    let database = synced(server.port)
    try server.accept()
    let viewer = Viewer(database)
    viewer.listen("v", database.reference(withPath: "a").queryOrderedByKey())
    let (number, _, _) = try server.request()
    try server.push("d", "{\"p\":\"a\",\"d\":{\"k\":1}}")
    try server.answer(number)
    _ = try await viewer.take(2)
    let entries = (0..<20_000).map { "\"k\($0)\":\($0)" }.joined(separator: ",")
    try server.push("m", "{\"p\":\"a\",\"d\":{\(entries)}}")
    guard case .value(let last)? = try await viewer.take(20_001)["v"]?.last else {
      Issue.record("no value")
      return
    }
    #expect(last.childCount == 20_001)
    try await database.close()
  }

  @Test("a read fails if the host is not known")
  func nowhere() async throws {
    let nowhere = synced(1, host: "nowhere.invalid")
    #expect(
      await failure { _ = try await nowhere.reference(withPath: "a").getData() }?.code
        == .unavailable)
    try await nowhere.close()
  }
}
