import DendroTestSupport
import Foundation
import Testing

@testable import Dendro

@Suite("URLs")
struct URLTests {
  let database = Database.inMemory()

  @Test(
    "name locations",
    arguments: [
      ("dendro://localhost", "/"), ("dendro://localhost/", "/"), ("dendro://localhost//", "/"),
      ("dendro://LOCALHOST/a/b/", "a/b"), ("localhost/a", "a"), ("https://localhost/a", "a"),
      ("ws://localhost/a", "a"), ("dendro://localhost/a?ns=x&y=%", "a"),
      ("dendro://localhost/50%25%20off/x%20y%3A1/%C3%BC~%26", "50% off/x y:1/ü~&"),
      ("dendro://localhost/a+b", "a b"), ("dendro://localhost/a%2Bb", "a+b"),
      ("dendro://localhost/a%2Fb", "a/b"), ("dendro://localhost/50%", "50%"),
      ("dendro://localhost/%FF/b", "%FF/b"), ("dendro://localhost/😀", "😀"),
      ("dendro://localhost/.info/connected", ".info/connected"),
      ("dendro://localhost/%2Einfo", ".info"),
    ])
  func locations(url: String, path: String) {
    #expect(database.reference(fromURL: url) == database.reference(withPath: path))
  }

  @Test("of locations lead back to them", arguments: 0..<20 as Range<UInt64>)
  func roundTrip(seed: UInt64) throws {
    var generator = SeededGenerator(seed: seed)
    func random(_ bound: Int) -> Int { generator.below(bound) }
    let pieces = [
      "a", " ", "%", "+", "%2F", "?", "&", "=", ":", "é", "e\u{301}", "😀", "~", "\\", "\"",
    ]
    for _ in 0..<100 {
      let keys = (0..<1 + random(4)).map { _ in
        (0..<1 + random(4)).map { _ in pieces[random(pieces.count)] }.joined()
      }
      let ref = database.reference(withPath: keys.joined(separator: "/"))
      #expect(database.reference(fromURL: ref.url) == ref, "seed \(seed): \(ref.url)")
      #expect(ref.url.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7F })
    }
    let connected = database.reference(withPath: ".info/connected")
    #expect(connected.url == "dendro://localhost/%2Einfo/connected")
    #expect(database.reference(fromURL: connected.url) == connected)
  }

  @Test(
    "that name nothing here carry their error",
    arguments: [
      ("", "InvalidDatabaseURL"), ("/a", "InvalidDatabaseURL"), ("://", "InvalidDatabaseURL"),
      ("dendro://", "InvalidDatabaseURL"), ("dendro:///a", "InvalidDatabaseURL"),
      ("dendro://elsewhere/a", "InvalidDatabaseURL"),
      ("dendro://localhost:80/a", "InvalidDatabaseURL"),
      ("dendro://localhost:/a", "InvalidDatabaseURL"),
      ("dendro://localhost:99999/a", "InvalidDatabaseURL"),
      ("ftp://localhost/a", "InvalidDatabaseURL"),
      ("dendro://local host/a", "InvalidDatabaseURL"),
      ("dendro://user@localhost/a", "InvalidDatabaseURL"),
      ("dendro://localhost/a?ns=%00", "InvalidDatabaseURL"),
      ("dendro://localhost/a.b", "InvalidPathValidation"),
      ("dendro://localhost/a%23", "InvalidPathValidation"),
      ("dendro://localhost/a/.info", "InvalidPathValidation"),
    ])
  func refused(url: String, name: String) async {
    let ref = database.reference(fromURL: url)
    #expect(await failure { try await ref.setValue(1) }?.name == name)
    #expect(await failure { _ = try await ref.child("b").getData() }?.name == name)
  }

  @Test(
    "have a host of labels, or an IPv6 address in brackets",
    arguments: [
      ("http://a.example:9000/b", "a.example", 9000), ("http://foo", "foo", nil),
      ("http://127.0.0.1:1", "127.0.0.1", 1), ("http://[::1]:9000/b", "[::1]", 9000),
      ("https://[2001:DB8::1]?ns=a", "[2001:db8::1]", nil), ("http://a-b._c", "a-b._c", nil),
      ("--help", nil, nil), ("http://-a", nil, nil), ("http://a-:9000", nil, nil),
      ("http://a..b", nil, nil), ("http://.", nil, nil), ("http://a.", nil, nil),
      ("http://[::1", nil, nil), ("http://::1", nil, nil), ("http://[]", nil, nil),
      ("http://[127.0.0.1]", nil, nil), ("http://[::1]x:9", nil, nil),
    ] as [(String, String?, Int?)])
  func hosts(url: String, host: String?, port: Int?) {
    let parsed = try? DatabaseURL(parsing: url)
    #expect(parsed?.host == host)
    #expect(parsed?.port == port)
  }

  @Test("whatever the string, a reference comes of it", arguments: 0..<20 as Range<UInt64>)
  func hostile(seed: UInt64) async {
    var generator = SeededGenerator(seed: seed)
    func random(_ bound: Int) -> Int { generator.below(bound) }
    let pieces = [
      "dendro", "https", ":", "/", "//", "://", "localhost", "?", "ns=", "&", "%", "%zz", "%2F",
      "#",
      "@", "[", "::1", "]", "é", "\u{0}", " ", "8080", "file", String(repeating: "h", count: 300),
    ]
    for _ in 0..<300 {
      let url = (0..<random(8)).map { _ in pieces[random(pieces.count)] }.joined()
      _ = await failure { _ = try await database.reference(fromURL: url).getData() }
    }
  }
}

/// One after the other, beside the test of the default instance, which sets the same variable.
extension DatabaseTests {
  @Test("a file URL names a directory, any other URL a directory beside the default one")
  func instances() async throws {
    let path = directory.path + "/some data"
    try FileManager.default.createDirectory(
      atPath: directory.path, withIntermediateDirectories: true)
    let url = URL(fileURLWithPath: path).absoluteString
    let database = Database.database(url: url)
    #expect(Database.database(url: url) === database)
    try await database.reference().setValue(1)
    #expect(FileManager.default.fileExists(atPath: path))
    #expect(database.reference().url == "dendro://localhost")
    try await database.close()
    #expect(Database.database(url: url) !== database)
    try await Database.database(url: url).close()

    for bad in [
      "file://elsewhere/tmp", "file:", "file:relative", "https://a.example.org/path", "",
      "nothing here",
    ] {
      let ref = Database.database(url: bad).reference()
      #expect(await failure { try await ref.setValue(1) }?.name == "InvalidDatabaseURL", "\(bad)")
    }
  }

  @Test("host, port and ns name a database; references say http only if a port stands")
  func names() async {
    // In a process of its own, whose environment no other test reads.
    await #expect(processExitsWith: .success) {
      let directory = TemporaryDirectory()
      setenv("XDG_DATA_HOME", directory.path, 1)
      let rows = [
        ("https://blog.example.app", "https://blog.example.app", "blog.example.app"),
        // A host of three labels is the name.
        ("https://shop.example.app?ns=other", "https://shop.example.app", "shop.example.app"),
        ("http://plain.example.app", "https://plain.example.app", "plain.example.app"),
        ("wss://socket.example.app/", "https://socket.example.app", "socket.example.app"),
        ("Bare.Example.app", "https://bare.example.app", "bare.example.app"),
        ("http://localhost:9000?ns=blog", "http://localhost:9000", "localhost_9000_blog"),
        ("http://localhost:9000/?a=b&ns=Shop", "http://localhost:9000", "localhost_9000_shop"),
        ("localhost:9000", "http://localhost:9000", "localhost_9000"),
        ("ws://localhost:9001", "http://localhost:9001", "localhost_9001"),
        ("https://localhost:9002", "https://localhost:9002", "localhost_9002"),
        ("wss://localhost:9003", "https://localhost:9003", "localhost_9003"),
      ]
      let place = directory.path + "/" + ProcessInfo.processInfo.processName + "@"
      for (url, address, name) in rows {
        let database = Database.database(url: url)
        #expect(Database.database(url: url) === database)
        #expect(database.reference().url == address)
        try await database.reference().setValue(url)
        #expect(FileManager.default.fileExists(atPath: place + name), "\(name)")
      }
      for (url, _, _) in rows {
        let database = Database.database(url: url)
        #expect(try await database.reference().getData().string == url, "no other database's")
        try await database.close()
      }
    }
  }
}
