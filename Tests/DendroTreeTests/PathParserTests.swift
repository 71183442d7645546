import DendroTestSupport
import DendroTree
import Testing

/// The parser looks at eight bytes at a time: each byte must mean the same wherever it stands.
@Suite struct PathParserTests {
  /// What the text means: its keys one by one.
  private func keys(of text: String) throws(ValidationError) -> [Key] {
    var keys: [Key] = []
    for segment in text.split(separator: "/") { keys.append(try Key(String(segment))) }
    return keys
  }

  private func expectSameMeaning(_ text: String) {
    let parsed = Result { () throws(ValidationError) in Array(try Path(parsing: text).keys) }
    let expected = Result { () throws(ValidationError) in try keys(of: text) }
    switch (parsed, expected) {
    case (.success(let parsed), .success(let expected)):
      #expect(parsed == expected, "\(text.debugDescription)")
    case (.failure(let error), .failure):
      #expect(error.kind == .invalidPath && error.message.contains("of the path"))
    default: Issue.record("\(text.debugDescription): \(parsed), not \(expected)")
    }
    expectSameBytes(text, parsed)
  }

  /// Stored bytes that are written into room of the caller's are those of the path, and stay within the room.
  private func expectSameBytes(_ text: String, _ parsed: Result<[Key], ValidationError>) {
    let room = Path.storedByteCountMax(text)
    var bytes = [UInt8](repeating: 0xA5, count: room + 16)
    let stored = bytes.withUnsafeMutableBytes { bytes in
      Result { () throws(ValidationError) in
        try Path.store(text, to: UnsafeMutableRawBufferPointer(rebasing: bytes[..<room]))
      }
    }
    #expect(bytes[room...].allSatisfy { $0 == 0xA5 }, "\(text.debugDescription)")
    switch (parsed, stored) {
    case (.success(let keys), .success(let (byteCount, keyCount))):
      let expected = Path(keys: keys).withStoredBytes { Array($0) }
      #expect(Array(bytes[..<byteCount]) == expected && keyCount == keys.count)
    case (.failure(let error), .failure(let same)): #expect(error == same)
    default: Issue.record("\(text.debugDescription): \(stored), not \(parsed)")
    }
  }

  @Test("every ASCII character, at every place of texts of up to 18 bytes")
  func everyCharacter() {
    for value in 0..<UInt8(0x80) {
      let character = Character(UnicodeScalar(value))
      for count in [1, 2, 7, 8, 9, 15, 16, 17, 18] {
        for place in 0..<count {
          var text = Array(repeating: Character("k"), count: count)
          text[place] = character
          expectSameMeaning(String(text))
        }
      }
    }
  }

  @Test(
    "characters of several bytes, at every place", arguments: ["é", "\u{E000}", "\u{FFFF}", "😀"])
  func severalBytes(character: String) {
    for count in 0..<18 {
      for place in 0...count {
        let text = String(repeating: "k", count: place) + character
        expectSameMeaning(text + String(repeating: "k", count: count - place) + "/after")
      }
    }
  }

  @Test("keys of every length around the places where their length takes more bytes")
  func lengths() {
    for count in [Array(1...40), Array(120...140), Array(760...772)].joined() {
      for key in [String(repeating: "k", count: count), String(repeating: "1", count: count)] {
        for text in [key, "a/\(key)", "\(key)/a", "/\(key)//\(key)/1/"] { expectSameMeaning(text) }
      }
    }
  }

  @Test("random texts", arguments: [1, 2, 3])
  func randomTexts(seed: UInt64) {
    var generator = SeededGenerator(seed: seed)
    let parts = [
      "/", "/", "//", "a", "posts", "-", "0", "7", "-12", "2147483648", "é", "😀", "\\",
      "-Nabcdefghijklmnopq",
    ]
    let illegal = [".", "#", "$", "[", "]", "\u{1}", "\u{7F}", "\0"]
    for _ in 0..<2_000 {
      var text = ""
      for _ in 0..<Int.random(in: 0..<12, using: &generator) {
        text += parts.randomElement(using: &generator) ?? ""
      }
      if Int.random(in: 0..<5, using: &generator) == 0 {
        text += illegal.randomElement(using: &generator) ?? ""
        text += parts.randomElement(using: &generator) ?? ""
      }
      expectSameMeaning(text)
    }
  }

  @Test(
    "the error names the key, the path and the limit",
    arguments: [
      (
        "a/b.c/d",
        "The key \"b.c\" of the path \"a/b.c/d\" has '.'; the characters [ ] . # $ / are forbidden."
      ),
      (
        "12345678/\u{2}",
        "The key \"\\u{02}\" of the path \"12345678/\\u{02}\" has the control character U+0002; control characters are forbidden."
      ),
    ])
  func message(text: String, message: String) {
    #expect { try Path(parsing: text) } throws: {
      ($0 as? ValidationError)?.message == message
    }
  }
}
