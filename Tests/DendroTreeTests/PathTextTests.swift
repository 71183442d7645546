import DendroTree
import Testing

/// Paths as text, with keys that Swift's strings do not tell apart from each other, or from a slash.
@Suite("Paths as text")
struct PathTextTests {
  /// With one of these a character begins with the slash before it.
  private static let marks = ["\u{301}b", "\u{903}", "\u{200D}x", "\u{FE0F}"]

  @Test("a path without its first slash keeps the mark with which its first key begins")
  func relative() throws {
    for mark in Self.marks {
      let path = try Path(parsing: "\(mark)/a")
      #expect(Array(path.relativeText.utf8) == Array("\(mark)/a".utf8))
      #expect(Array(path.description.utf8) == Array("/\(mark)/a".utf8))
      #expect(try Path(parsing: path.relativeText) == path)
    }
    #expect(Path.root.relativeText.isEmpty)
    #expect(Path.root.description == "/")
  }

  @Test(
    "the path of a priority",
    arguments: [
      ("a/.priority", "a"), (".priority", ""), ("/.priority", ""), ("a//.priority", "a/"),
      ("\u{600}/.priority", "\u{600}"), ("a.priority", nil), ("a/.priority/", nil), ("", nil),
      ("a/.priority\u{301}", nil),
    ] as [(String, String?)])
  func priorities(text: String, expected: String?) { #expect(text.pathOfPriority == expected) }

  @Test("two spellings of a character are two keys, also in an update")
  func updates() throws {
    let text = #"{"\u00e9": 1, "e\u0301": 2, "k/\u00e9": 3, "k/e\u0301": 4, "\u00e9": 5}"#
    let draft = try text.utf8.withContiguousStorageIfAvailable {
      try JSONParser.parseDraft(updating: UnsafeRawBufferPointer($0), at: .root)
    }
    guard case .update(_, let entries)? = draft?.write else {
      Issue.record("it is an update")
      return
    }
    #expect(entries.count == 4)
    let keys = Set(entries.compactMap { Array($0.path.keys).last.map { Array($0.string.utf8) } })
    #expect(keys.count == 2)
    guard case .set(let first) = entries[0].action else {
      Issue.record("the first entry sets a value")
      return
    }
    // The last of two with one spelling counts.
    #expect(first.scalar == .integer(5))
  }
}
