import Dendro
import DendroServer
import DendroTestSupport
import Testing

/// Heads and bodies in which servers on the way may see other ends than this one: what stands behind them must not become a
/// request of its own.
@Suite("serving: where a request ends")
struct FramingTests {
  private static let hidden = HTTPClient.request("PUT", "/hidden.json", "true")

  /// Sends a request and one behind it on the same connection.
  ///
  /// - Returns: all that comes back until the server closes the connection.
  private func answers(_ request: String, _ served: Served) throws -> String {
    let client = try served.client()
    try client.send(request + Self.hidden)
    return client.readToEnd()
  }

  private static func count(_ text: String, in whole: String) -> Int {
    whole.ranges(of: text).count
  }

  @Test(
    "a head that is malformed is refused by one answer, and its connection closed",
    arguments: [
      "DELETE\0X /kept.json HTTP/1.1\r\nHost: x\r\n\r\n",
      "DELETE /kept.json\0X HTTP/1.1\r\nHost: x\r\n\r\n",
      "DELETE /kept.json?print=silent\0X HTTP/1.1\r\nHost: x\r\n\r\n",
      "DELETE /kept.json HTTP/1.1\r\nHost: x\0y\r\n\r\n",
      "DELETE /kept.json HTTP/1.1\r\nHost: x\r\nA: \0\r\nB: c\r\n\r\n",
      "DELETE /kept.json HTTP/1.1\r\nHost: x\r\nA: b\0\r\n\r\n",
      "DELETE /kept.json HTTP/1.1\r\nHost: x\r\n\0A: b\r\n\r\n",
      "DELETE /kept.json HTTP/1.1\nHost: x\r\n\r\n",
      "DELETE /kept.json HTTP/1.1\r\nHost: x\nA: b\r\n\r\n",
      "DELETE /kept.json HTTP/1.1\r\nHost: x\r\nA: b\n\r\n",
      "DELETE /kept.json HTTP/1.1\r\nHost: x\r\n\n",
      "DELETE /kept.json HTTP/1.1\r\nHost: x\r\nA: b\r\n c\r\n\r\n",
      "DELETE /kept.json HTTP/1.1\r\nHost: x\r\nTransfer-Encoding:\r\n chunked\r\n\r\n",
      "DELETE /kept.json HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\t0\r\n\r\n",
      "DELETE /kept.json HTTP/1.1\r\nHost: x\r\nA: b\rContent-Length: 5\r\n\r\n",
      "DELETE /kept.json HTTP/1.1\r\nHost: x\r\nContent-Length : 5\r\n\r\n",
      "DELETE /kept.json HTTP/1.1\r\nHost: x\r\nContent-Length\t: 5\r\n\r\n",
      "DELETE /kept.json HTTP/1.1\r\nHost: x\r\n: b\r\n\r\n",
      "DELETE /kept.json HTTP/1.1\r\nHost: x\r\nA(b): c\r\n\r\n",
      "DELETE /kept.json HTTP/1.1\r\nHost: x\r\nA: \u{1}\r\n\r\n",
      "DELETE /kept.json HTTP/1.1\r\nHost: x\r\nA\r\n\r\n",
      "DELETE  /kept.json HTTP/1.1\r\nHost: x\r\n\r\n",
      "DELETE /kept .json HTTP/1.1\r\nHost: x\r\n\r\n",
      "DELETE /kept.json?\tprint=silent HTTP/1.1\r\nHost: x\r\n\r\n",
      "DELETE\t/kept.json HTTP/1.1\r\nHost: x\r\n\r\n",
      "DEL{}TE /kept.json HTTP/1.1\r\nHost: x\r\n\r\n",
      "DELETE /kept.json HTTP/1.1 \r\nHost: x\r\n\r\n",
      "DELETE /kept.json http/1.1\r\nHost: x\r\n\r\n",
      "DELETE /kept.json\r\nHost: x\r\n\r\n",
    ])
  func head(text: String) async throws {
    try await serving { served in
      try await served.database.reference().setValue(["kept": true])
      let answers = try answers(text, served)
      #expect(answers.hasPrefix("HTTP/1.1 400 "), "\(answers)")
      #expect(Self.count("HTTP/1.1 ", in: answers) == 1, "\(answers)")
      let kept = try await served.database.reference().getData()
      #expect(kept.count == 1 && kept.hasChild("kept"))
    }
  }

  @Test(
    "a length of the body that is in doubt is refused, and ends the connection",
    arguments: [
      ("Content-Length: 4\r\nContent-Length: 4\r\n", 400),
      ("Content-Length: 4\r\nContent-Length: 40\r\n", 400),
      ("Content-Length: 4, 4\r\n", 400), ("Content-Length: +4\r\n", 400),
      ("Content-Length: -4\r\n", 400), ("Content-Length: 4 \r\n", 400),
      ("Content-Length: 0x4\r\n", 400), ("Content-Length:\r\n", 400),
      ("Content-Length: 99999999999999999999999999\r\n", 413),
      ("Content-Length: 18446744073709551615\r\n", 413),
      ("Transfer-Encoding: chunked\r\nContent-Length: 4\r\n", 400),
      ("Content-Length: 4\r\nTransfer-Encoding: chunked\r\n", 400),
      ("Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n", 400),
      ("Transfer-Encoding: identity\r\nTransfer-Encoding: chunked\r\n", 400),
      ("Transfer-Encoding: identity\r\n", 501), ("Transfer-Encoding: xchunked\r\n", 501),
      ("Transfer-Encoding: gzip, chunked\r\n", 501), ("Transfer-Encoding: chunked \r\n", 501),
      ("Transfer-Encoding: \"chunked\"\r\n", 501), ("Transfer-Encoding:\r\n", 501),
    ])
  func length(fields: String, status: Int) async throws {
    try await serving { served in
      let answers = try answers(
        "PUT /a.json HTTP/1.1\r\nHost: x\r\n\(fields)\r\ntrue", served)
      #expect(answers.hasPrefix("HTTP/1.1 \(status) "), "\(answers)")
      #expect(answers.contains("\r\nConnection: close\r\n"), "\(answers)")
      #expect(try await !served.database.reference().getData().exists())
    }
  }

  @Test(
    "a body in chunks is read, however its lines end, and nothing behind it",
    arguments: [
      "4\r\ntrue\r\n0\r\n\r\n", "1\r\nt\r\n3;a=\"b\"\r\nrue\r\n0\r\n\r\n", "4;a\ntrue\r\n0\r\n\r\n",
      "4\ntrue\n0\n\n", "04\r\ntrue\r\n000\r\nA: b\r\n\r\n",
    ])
  func chunks(body: String) async throws {
    try await serving { served in
      for method in ["PUT", "GET", "DELETE"] {
        let answers = try answers(
          "\(method) /a.json HTTP/1.1\r\nHost: x\r\ntransfer-encoding: Chunked\r\n\r\n\(body)",
          served)
        #expect(answers.hasPrefix("HTTP/1.1 200 "), "\(answers)")
        #expect(answers.contains("\r\nConnection: close\r\n"), "\(answers)")
        #expect(Self.count("HTTP/1.1 ", in: answers) == 1, "\(answers)")
        #expect(try served.client()("GET", "/hidden.json").body == "null")
        let left = method == "DELETE" ? "null" : "true"
        #expect(try served.client()("GET", "/a.json").body == left)
      }
    }
  }

  @Test(
    "chunks that are malformed are refused, and end the connection",
    arguments: [
      "g\r\ntrue\r\n0\r\n\r\n", "-4\r\ntrue\r\n0\r\n\r\n", " 4\r\ntrue\r\n0\r\n\r\n",
      "0x4\r\ntrue\r\n0\r\n\r\n", "4\r\ntrueX\r\n0\r\n\r\n", ";\r\n", "\r\n4\r\ntrue\r\n0\r\n\r\n",
    ])
  func badChunks(body: String) async throws {
    try await serving { served in
      let answers = try answers(
        "PUT /a.json HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n\(body)", served)
      #expect(answers.hasPrefix("HTTP/1.1 400 "), "\(answers)")
      #expect(try await !served.database.reference().getData().exists())
    }
  }

  @Test("an older client, or one that changes the protocol, sends no chunks")
  func chunksOfOthers() async throws {
    try await serving { served in
      let old = try answers(
        "PUT /a.json HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n4\r\ntrue\r\n0\r\n\r\n", served)
      #expect(old.hasPrefix("HTTP/1.1 400 "))
      for length in ["Transfer-Encoding: chunked", "Content-Length: 5"] {
        let socket = try answers(
          "GET /.ws?v=5 HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
            + "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
            + "\(length)\r\n\r\n0\r\n\r\n", served)
        #expect(socket.hasPrefix("HTTP/1.1 400 "))
      }
      #expect(try await !served.database.reference().getData().exists())
    }
  }

  @Test("a head that is well formed is taken, in whatever pieces it comes", arguments: 0..<4)
  func pieces(seed: UInt64) async throws {
    try await serving { served in
      var generator = SeededGenerator(seed: seed)
      let client = try served.client()
      for round in 0..<40 {
        var fields = ["Host: x", "A:b", "Empty:", "Spaces: ", "Tabs:\t \ta\tb c", "Accents: é"]
        for number in 0..<generator.below(30) {
          fields.append(
            "X-\(number): " + String(repeating: "v", count: generator.below(300)))
        }
        let name = String(repeating: "k", count: 1 + generator.below(500))
        let text =
          "PUT /a/%6B\(name).json?print=silent&x=%20+ HTTP/1.1\r\n"
          + fields.joined(separator: "\r\n") + "\r\nContent-Length: 4\r\n\r\ntrue"
        // Often with the beginning of the next request.
        var bytes = Array(text.utf8)
        if round % 2 == 0 { bytes += Array(HTTPClient.request("GET", "/a/k\(name).json").utf8) }
        var start = 0
        while start < bytes.count {
          let isShort = generator.below(3) == 0
          let end = min(bytes.count, start + 1 + generator.below(isShort ? 40 : 4000))
          try client.send(bytes: Array(bytes[start..<end]))
          start = end
        }
        #expect(try client.answer().status == 204, "seed \(seed), round \(round)")
        if round % 2 == 0 { #expect(try client.answer().body == "true") }
      }
    }
  }
}
