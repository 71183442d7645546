import Dendro
import DendroPlatform
import DendroServer
import DendroTestSupport
import Foundation
import Synchronization
import Testing

@testable import DendroSync

/// What lies between a database and its server.
@Suite("synced databases: connections")
struct TransportTests {
  @Test(
    "TLS: a certificate of a file of one's own is believed, others and those of other hosts are not"
  )
  func certificates() async throws {
    let folder = try TemporaryFolder()
    let one = try folder.write("one.pem", TestCertificate.one.certificate)
    let tls = TLSOptions(
      certificateFile: one, keyFile: try folder.write("one.key", TestCertificate.one.key))
    try await serving { options in
      options.tls = tls
    } _: { served, server in
      let trust = TrustedCertificates(file: one)
      let good = synced(Int(server.port), secure: true, host: "localhost", trusting: trust)
      let text = String(repeating: "long ", count: 100_000)
      _ = try await good.reference(withPath: "a").setValue(text)
      #expect(try await served.reference(withPath: "a").getData().value as? String == text)
      #expect(try await good.reference(withPath: "a").getData().value as? String == text)
      try await good.close()
      let reasons: [(TrustedCertificates, String, String)] = [
        (.system, "localhost", "self-signed certificate"),
        (trust, "localhost.localdomain", "ostname mismatch"),
        (TrustedCertificates(file: folder.path + "/none.pem"), "localhost", "no certificates in"),
      ]
      for (trust, host, reason) in reasons {
        let lines = Mutex<[String]>([])
        let bad = synced(Int(server.port), secure: true, host: host, trusting: trust) { options in
          options.logging = { message in lines.withLock { $0.append(message.message) } }
        }
        try await eventually {
          lines.withLock { lines in
            lines.contains { $0.contains(reason) || $0.contains("is not known") }
          }
        }
        try await bad.close()
      }
    }
  }

  @Test("the environment names the proxy of a server, and the hosts that need none")
  func proxy() throws {
    let secure = Destination(
      RemoteAddress(isSecure: true, host: "db.example.com", port: 443, namespace: nil),
      redirectedTo: nil)
    let plain = Destination(
      RemoteAddress(isSecure: false, host: "db.example.com", port: 80, namespace: nil),
      redirectedTo: nil)
    let environment = ["https_proxy": "http://user:word@proxy.example:8080", "HTTP_PROXY": "other"]
    #expect(Proxy(for: secure, environment: environment)?.host == "proxy.example")
    #expect(Proxy(for: secure, environment: environment)?.port == 8080)
    #expect(Proxy(for: plain, environment: environment)?.host == "other")
    for exempt in ["*", "example.com", ".example.com", "a.b, db.example.com"] {
      #expect(
        Proxy(for: secure, environment: environment.merging(["no_proxy": exempt]) { $1 }) == nil)
    }
    #expect(Proxy(for: secure, environment: [:]) == nil)
  }

  @Test("a server may name the host for the next connection")
  func redirection() {
    let address = RemoteAddress(isSecure: true, host: "a.example", port: 443, namespace: "n")
    for (authority, host, port) in [
      (nil, "a.example", 443), ("b.example", "b.example", 443), ("b.example:81", "b.example", 81),
      ("", "a.example", 443), ("b.example:0", "b.example:0", 443),
    ] as [(String?, String, Int)] {
      let destination = Destination(address, redirectedTo: authority)
      #expect(destination.host == host && destination.port == port && destination.isSecure)
    }
  }

  @Test(
    "lines that are cut at any byte, held back and repeated: in the end all is as the writes make it",
    arguments: Scale.seeds(25))
  func cutLines(seed: UInt64) async throws {
    try await serving { served, server in
      var generator = SeededGenerator(seed: seed)
      let proxy = try LineCutter(to: server.port)
      let databases = (0..<3).map { _ in synced(proxy.port) }
      let viewers = databases.map { Viewer($0) }
      for (database, viewer) in zip(databases, viewers) {
        viewer.listen("all", database.reference(withPath: "shared"))
      }
      let mine = Mutex<[Int: Int]>([:])
      for round in 0..<40 {
        let index = generator.below(3)
        let own = databases[index].reference(withPath: "shared/c\(index)")
        own.child("last").setValue(round) { error, _ in
          if error == nil { mine.withLock { $0[index] = round } }
        }
        own.child("k\(generator.below(5))").setValue(
          ["round": round], withCompletionBlock: { _, _ in })
        if generator.oneIn(3) { proxy.cut(after: generator.below(400)) }
        if generator.oneIn(6) { databases[generator.below(3)].goOffline() }
        for database in databases where generator.oneIn(2) { database.goOnline() }
        if generator.oneIn(2) { try await Task.sleep(for: .milliseconds(generator.below(5))) }
      }
      proxy.cut(after: nil)
      for database in databases {
        database.goOnline()
        try await database.waitForPendingWrites()
      }
      let there = try await served.reference(withPath: "shared").getData().node
      for (index, database) in databases.enumerated() {
        try await eventually {
          try await database.reference(withPath: "shared").getData().node == there
        }
        await database.waitForPendingEvents()
        guard case .value(let last)? = await viewers[index].take()["all"]?.last else {
          Issue.record("seed \(seed): no value")
          continue
        }
        #expect(last == there, "seed \(seed)")
        let own = try await served.reference(withPath: "shared/c\(index)/last").getData()
        #expect(own.value as? Int == mine.withLock { $0[index] }, "seed \(seed)")
        try await database.close()
      }
    }
  }
}
