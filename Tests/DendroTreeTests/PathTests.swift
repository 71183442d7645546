import DendroTree
import DendroTestSupport
import Testing

@Suite struct PathTests {
  @Test(
    "paths are split at slashes",
    arguments: [
      ("////a///b//", "/a/b"), ("/", "/"), ("", "/"), ("a", "/a"), ("a%20b", "/a%20b"),
      ("/a/5/é", "/a/5/é"), ("00/-0", "/00/-0"),
    ])
  func parsing(text: String, description: String) throws {
    #expect(try Path(parsing: text).description == description)
  }

  @Test(
    "paths with a key that the rules forbid are refused",
    arguments: [
      "a.b", "a/[", "]", "#", "x/$y", "a/\u{1}", "a/" + String(repeating: "k", count: 769),
    ])
  func forbidden(text: String) {
    #expect { try Path(parsing: text) } throws: { ($0 as? ValidationError)?.kind == .invalidPath }
  }

  @Test("parts of a path")
  func parts() throws {
    let path = try Path(parsing: "a/5/é")
    #expect(path.count == 3 && !path.isRoot && Path.root.isRoot)
    #expect(try path.first == Key("a") && path.last == Key("é"))
    #expect(
      try path.parent == Path(parsing: "a/5") && Path.root.parent == nil && Path.root.last == nil)
    #expect(Array(path.keys) == [try Key("a"), try Key("5"), try Key("é")])
    #expect(Path(keys: path.keys) == path)
    #expect(try Path(parsing: "a").appending(Key("5")).appending(Path(parsing: "é")) == path)
    #expect(
      try path.prefix(1) == Path(parsing: "a") && path.dropFirst(1) == Path(parsing: "5/é"))
    #expect(path.dropFirst(9) == .root && path.prefix(9) == path)
  }

  @Test(
    "ancestors",
    arguments: [
      ("", "a", true), ("a", "a", true), ("a", "a/b", true), ("a", "ab", false),
      ("a/b", "a", false), ("a/b", "a/c", false), ("5", "05", false),
    ])
  func ancestors(ancestor: String, path: String, isPrefix: Bool) throws {
    let (ancestor, path) = (try Path(parsing: ancestor), try Path(parsing: path))
    #expect(ancestor.isPrefix(of: path) == isPrefix)
    #expect(path.relative(to: ancestor).map { ancestor.appending($0) } == (isPrefix ? path : nil))
  }

  @Test("paths sort key by key, a prefix first")
  func order() throws {
    let sorted = try ["", "2", "2/a", "10", "a", "a/b", "a/b/c", "a/c", "ab", "b"].map {
      try Path(parsing: $0)
    }
    for (i, a) in sorted.enumerated() {
      for (j, b) in sorted.enumerated() { #expect((a < b) == (i < j) && (a == b) == (i == j)) }
    }
  }

  @Test(
    "stored bytes",
    arguments: [
      "", "a", "posts/-NjEtLV-abcdefghijkl/title", "5/00/é",
      String(repeating: "k", count: 300) + "/" + String(repeating: "5", count: 126) + "/"
        + String(repeating: "6", count: 127),
    ])
  func storedBytes(text: String) throws {
    let path = try Path(parsing: text)
    let bytes = path.withStoredBytes { Array($0) }
    let read = bytes.withUnsafeBytes { Path(storedBytes: $0) }
    #expect(read == path && read?.count == path.count && read?.description == path.description)
    for count in bytes.indices where count > 0 {
      let cut = bytes[..<count].withUnsafeBytes { Path(storedBytes: $0) }
      #expect(cut == nil || cut?.isPrefix(of: path) == true)
    }
  }

  @Test(
    "stored bytes of no path are refused",
    arguments: [
      [0], [2, 0x61], [1, 0x35], [0x81, 0x00, 0x61], [1, 0x2F],
      [0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x7F],
    ] as [[UInt8]])
  func hostile(bytes: [UInt8]) {
    #expect(bytes.withUnsafeBytes { Path(storedBytes: $0) } == nil)
  }
}
