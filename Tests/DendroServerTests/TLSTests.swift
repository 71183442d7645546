import Dendro
import DendroPlatform
@testable import DendroServer
import DendroTestSupport
import Dispatch
import Synchronization
import Testing

@Suite("serving: TLS")
struct TLSTests {
  private let folder: TemporaryFolder
  private let options: TLSOptions
  private let complaints = Complaints()

  private final class Complaints: Sendable { let all = Mutex<[String]>([]) }

  init() throws {
    folder = try TemporaryFolder()
    options = TLSOptions(
      certificateFile: try folder.write("server.pem", TestCertificate.one.certificate),
      keyFile: try folder.write("server.key", TestCertificate.one.key))
  }

  private func serving(
    _ change: (inout DatabaseServerOptions) -> Void = { _ in },
    _ body: (Served) async throws -> Void
  ) async throws {
    let complaints = complaints
    try await DendroServerTests.serving(
      {
        $0.tls = self.options
        $0.errorLog = { sentence in complaints.all.withLock { $0.append(sentence) } }
        change(&$0)
      }, body)
  }

  @Test("requests, long bodies and streams go as they do without TLS")
  func requests() async throws {
    try await serving { served in
      let http = try served.secureClient()
      #expect(try http("PUT", "/a.json", "1").body == "1")
      #expect(try http("GET", "/a.json").body == "1")
      let long = "\"" + String(repeating: "x", count: 5_000_000) + "\""
      #expect(try http("PUT", "/long.json?print=silent", long).status == 204)
      #expect(try http("GET", "/long.json").body == long)
      let stream = try served.secureClient()
      try stream.send(
        HTTPClient.request("GET", "/a.json", nil, ["Accept": "text/event-stream"]))
      #expect(try stream.head().status == 200)
      #expect(try stream.event() == "put {\"path\":\"/\",\"data\":1}")
      for number in 2...50 {
        #expect(try http("PUT", "/a.json", "\(number)").status == 200)
        #expect(try stream.event() == "put {\"path\":\"/\",\"data\":\(number)}")
      }
      var text = ""
      for number in 0..<100 { text += HTTPClient.request("PUT", "/n.json", "\(number)") }
      try http.send(text)
      for number in 0..<100 { #expect(try http.answer().body == "\(number)") }
    }
  }

  @Test("WebSockets go as they do without TLS")
  func sockets() async throws {
    try await serving { served in
      let client = try WebSocketClient(try served.secureClient())
      let ok = "{\"s\":\"ok\",\"d\":\"\"}"
      #expect(try client("p", "{\"p\":\"/a\",\"d\":1}") == [ok])
      let long = String(repeating: "x", count: 500_000)
      let frames = stride(from: 0, to: 1, by: 1).map { _ in "{\"p\":\"/long\",\"d\":\"\(long)\"}" }
      for frame in frames { #expect(try client("p", frame) == [ok]) }
      #expect(try served.secureClient()("GET", "/long.json").body == "\"\(long)\"")
      // What a client wants written at its end is written when it leaves.
      let other = try WebSocketClient(try served.secureClient())
      #expect(try other("o", "{\"p\":\"/left\",\"d\":true}") == [ok])
      withExtendedLifetime(other) {}
      try other.frame(0x8, [0x03, 0xE8])
      let http = try served.secureClient()
      var hasLeft = false
      for _ in 0..<10_000 where !hasLeft { hasLeft = try http("GET", "/left.json").body == "true" }
      #expect(hasLeft)
    }
  }

  @Test("many clients at once, that come and leave")
  func many() async throws {
    try await serving { served in
      try await withThrowingTaskGroup(of: Void.self) { group in
        for client in 0..<8 {
          group.addTask {
            for number in 0..<20 {
              let http = try served.secureClient()
              #expect(try http("PUT", "/\(client).json", "\(number)").body == "\(number)")
              #expect(try http("GET", "/\(client).json").body == "\(number)")
            }
          }
        }
        try await group.waitForAll()
      }
    }
  }

  @Test("a new certificate is used from the next connection on, and a broken one never")
  func renewal() async throws {
    try await serving { served in
      let old = try served.tunnel()
      #expect(old.subject == "/CN=one")
      let http = HTTPClient(socket: old.socket)
      #expect(try http("PUT", "/a.json", "1").status == 200)
      _ = try folder.write("server.pem", TestCertificate.two.certificate)
      _ = try folder.write("server.key", TestCertificate.two.key)
      var subject = ""
      while subject != "/CN=two" { subject = try subjectNow(served) }
      #expect(try http("GET", "/a.json").body == "1")
      for (text, complaint) in [
        ("no certificate", "has no certificate in PEM"),
        (TestCertificate.one.certificate, "is not that of the certificate in"),
      ] {
        _ = try folder.write("server.pem", text)
        while !complaints.all.withLock({ $0.contains { $0.contains(complaint) } }) {
          #expect(try subjectNow(served) == "/CN=two")
        }
        #expect(try subjectNow(served) == "/CN=two")
      }
      _ = try folder.write("server.key", TestCertificate.one.key)
      while subject != "/CN=one" { subject = try subjectNow(served) }
      #expect(unlink(folder.path + "/server.key") == 0)
      let complaint = "server.key cannot be read"
      while !complaints.all.withLock({ $0.contains { $0.contains(complaint) } }) {
        #expect(try subjectNow(served) == "/CN=one")
      }
    }
  }

  private func subjectNow(_ served: Served) throws -> String {
    let tunnel = try served.tunnel()
    let client = HTTPClient(socket: tunnel.socket)
    return withExtendedLifetime(client) { tunnel.subject }
  }

  @Test("a certificate that has expired is used, and said once")
  func expired() throws {
    let complaints = complaints
    @Sendable func report(_ sentence: String) { complaints.all.withLock { $0.append(sentence) } }
    let (before, after): (Int64, Int64) = (2_000_000_000, 5_000_000_000)
    let files = try CertificateFiles(options, now: before, report: report)
    files.refresh(now: before)
    #expect(complaints.all.withLock { $0 } == [])
    for _ in 0..<2 { files.refresh(now: after) }
    #expect(
      complaints.all.withLock { $0 } == [
        "the certificate in \(options.certificateFile) has expired: clients refuse it"
      ])
    _ = try CertificateFiles(options, now: after, report: report)
    #expect(complaints.all.withLock { $0 }.count == 2)
  }

  @Test("a server whose certificate or key cannot be used does not start")
  func refusals() async throws {
    let database = Database.inMemory()
    for (certificate, key, complaint) in [
      (TestCertificate.one.certificate, TestCertificate.two.key, "is not that of the certificate"),
      (TestCertificate.one.key, TestCertificate.one.key, "has no certificate in PEM"),
      (TestCertificate.one.certificate, "", "has no private key in PEM"),
      (TestCertificate.weak.certificate, TestCertificate.weak.key, "its key may be too short"),
    ] {
      var options = DatabaseServerOptions.patient
      options.tls = TLSOptions(
        certificateFile: try folder.write("other.pem", certificate),
        keyFile: try folder.write("other.key", key))
      await #expect {
        try await DatabaseServer.start(serving: database, options: options)
      } throws: {
        ($0 as? DatabaseServerError)?.message.contains(complaint) ?? false
      }
      options.tls?.keyFile = folder.path + "/none"
      await #expect(throws: DatabaseServerError.self) {
        try await DatabaseServer.start(serving: database, options: options)
      }
    }
    try await database.close()
  }

  @Test("clients that speak no TLS, or never begin, are given up")
  func strangers() async throws {
    try await serving({ $0.headTimeout = .seconds(2) }) { served in
      let plain = try served.client()
      try plain.send(HTTPClient.request("PUT", "/a.json", "1"))
      #expect(!plain.readToEnd().contains("HTTP/1.1 200"))
      let silent = try served.client()
      #expect(silent.readToEnd() == "")
      let half = try served.secureClient()
      try half.send("GET /.json HTTP/1.1\r\nHost: x\r\n")
      #expect(half.readToEnd().hasPrefix("HTTP/1.1 408 "))
      #expect(try served.secureClient()("GET", "/a.json").body == "null")
    }
  }

  @Test("the server's own pages come by TLS")
  func origin() async throws {
    try await serving { served in
      for (origin, status) in [
        ("https://nas:9000", 200), ("http://nas:9000", 403), ("https://nas", 403),
        ("http://localhost:3000", 200),
      ] {
        let http = try served.secureClient()
        let fields = ["Host": "nas:9000", "Origin": origin]
        #expect(try http("GET", "/a.json", nil, fields).status == status, "\(origin)")
      }
    }
  }

  @Test("a client that is reading when the server stops gets its answer to the end")
  func stopping() async throws {
    try await serving { served in
      let count = 8_000_000
      let body = "\"" + String(repeating: "x", count: count) + "\""
      #expect(try served.secureClient()("PUT", "/big.json?print=silent", body).status == 204)
      let reader = try served.secureClient()
      try reader.send(HTTPClient.request("GET", "/big.json"))
      #expect(try reader.head().status == 200)
      nonisolated(unsafe) let client = reader
      // On a thread that no other test needs.
      let (readCounts, reading) = AsyncStream.makeStream(of: Int.self)
      DispatchQueue.global().async {
        reading.yield(client.readToEnd().utf8.count)
        reading.finish()
      }
      await served.server.stop()
      for await readCount in readCounts { #expect(readCount > count) }
    }
  }
}

extension Served {
  fileprivate func tunnel() throws -> TLSTunnel {
    try TLSTunnel(try HTTPClient.connected(to: server.port))
  }

  fileprivate func secureClient() throws -> HTTPClient { HTTPClient(socket: try tunnel().socket) }
}
