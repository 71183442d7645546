import Dendro
import DendroProtocol
import DendroTestSupport
import Foundation
import Synchronization
import Testing

@testable import DendroSync

/// Connections that are made by a proxy.
@Suite("synced databases: proxies")
struct ProxyTests {
  @Test(
    "a proxy is asked for the server with the user's name, and what follows goes through",
    arguments: [("", nil), ("user:word@", "user:word"), ("us%40er:a%3Ab@", "us@er:a:b")])
  func through(user: String, credentials: String?) async throws {
    let proxy = try ScriptedServer()
    let attempt = try Attempt(proxy, user: user)
    var lines = ["CONNECT db.example.com:9000 HTTP/1.1", "Host: db.example.com:9000"]
    if let credentials {
      lines.append("Proxy-Authorization: Basic \(Base64.encode(Array(credentials.utf8)))")
    }
    #expect(try proxy.take() == lines.joined(separator: "\r\n") + "\r\n\r\n")
    try proxy.write(Array("HTTP/1.1 200 Connection established\r\nVia: x\r\n\r\n".utf8))
    let head = try proxy.nextHead()
    #expect(head.hasPrefix("GET /.ws?v=5 HTTP/1.1\r\nHost: db.example.com:9000\r\n"))
    #expect(!head.contains("Proxy-Authorization"))
    try proxy.changeOver(head)
    #expect(try proxy.nextText() == Array("hello".utf8))
    try proxy.send("there")
    #expect(try await attempt.outcome() == "there")
  }

  @Test(
    "a proxy that does not connect ends the attempt, and the reason says so",
    arguments: [
      (
        "HTTP/1.1 407 Proxy Authentication Required\r\n\r\n",
        "the proxy refuses: 407 Proxy Authentication Required"
      ),
      ("HTTP/1.1 502 Bad Gateway\r\n\r\n", "the proxy refuses: 502 Bad Gateway"),
      ("\r\n\r\n", "the proxy refuses: "),
      ("HTTP/1.1 200 OK\r\n\r\nHTTP/1.1 101", "the proxy sends more than its answer"),
      (
        "HTTP/1.1 200 OK\r\nX: " + String(repeating: "x", count: 20_000),
        "the head of the answer is too long"
      ),
    ])
  func refused(answer: String, reason: String) async throws {
    let proxy = try ScriptedServer()
    let attempt = try Attempt(proxy)
    _ = try proxy.take()
    try proxy.write(Array(answer.utf8))
    #expect(try await attempt.outcome() == reason)
    try proxy.framesUntilEnd()
  }

  @Test("a proxy that closes the connection ends the attempt", arguments: ["", "HTTP/1.1 200 OK"])
  func cut(answer: String) async throws {
    let proxy = try ScriptedServer()
    let attempt = try Attempt(proxy)
    _ = try proxy.take()
    try proxy.write(Array(answer.utf8))
    proxy.cut()
    #expect(try await attempt.outcome() == "the server has closed it")
  }

  @Test("a proxy that says nothing is left at the deadline", arguments: ["", "HTTP/1.1 200 OK"])
  func silent(answer: String) async throws {
    let proxy = try ScriptedServer()
    let attempt = try Attempt(proxy, timeout: .seconds(5))
    _ = try proxy.take()
    try proxy.write(Array(answer.utf8))
    #expect(try await attempt.outcome() == "it took too long")
    try proxy.framesUntilEnd()
  }
}

/// A client that reaches a server by a proxy, on a thread of its own, and sends and receives a message.
private final class Attempt: Sendable {
  private let result = Mutex<String?>(nil)

  init(_ server: ScriptedServer, user: String = "", timeout: Duration = .seconds(60)) throws {
    let address = RemoteAddress(
      isSecure: false, host: "db.example.com", port: 9000, namespace: nil)
    let destination = Destination(address, redirectedTo: nil)
    let proxy = try #require(
      Proxy(
        for: destination, environment: ["http_proxy": "http://\(user)127.0.0.1:\(server.port)"]))
    let thread = Thread { [self] in
      let text = Self.reach(destination, through: proxy, until: .now + timeout)
      result.withLock { $0 = text }
    }
    thread.start()
  }

  /// The message that has come, or why there is none.
  func outcome() async throws -> String? {
    try await eventually { result.value != nil }
    return result.value
  }

  private static func reach(
    _ destination: Destination, through proxy: Proxy, until deadline: ContinuousClock.Instant
  ) -> String {
    let waiter = Waiter()
    do throws(TransportError) {
      let line = try WebSocketLine.open(
        destination, through: proxy, trusting: nil, lastSession: nil, SyncLimits(), waiter,
        until: deadline
      ) { false }
      try line.send([Array("hello".utf8)])
      var text: String?
      while .now < deadline {
        _ = try line.receive { messages in
          text = messages.first.map { String(decoding: $0, as: UTF8.self) }
          return false
        }
        if let text { return text }
        waiter.wait(for: line.descriptor, writing: line.wantsToWrite, until: deadline)
      }
      throw .timedOut
    } catch {
      return error.description
    }
  }
}
