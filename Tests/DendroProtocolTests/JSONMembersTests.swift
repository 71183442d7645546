import DendroProtocol
import DendroTesting
import DendroTree
import Testing

@Suite("WebSocket dialogue, members of messages")
struct JSONMembersTests {
  private func members(_ text: String) -> JSONMembers? { JSONMembers(Array(text.utf8)[...]) }

  @Test("a scalar reads the same whether it needs the parser or not")
  func scalars() throws {
    let tokens = [
      "0", "1", "9", "-1", "-0", "01", "1.0", "1e3", "+1", "999999999999999999",
      "9223372036854775807", "9223372036854775808", "12 ", "1 2", "true", "false", "null", "nul",
      "x",
      #""""#, #""a""#, #"" ""#, #""a\n""#, #""\u0041""#, #""é""#, #""\ud83d\ude00""#, #""\ud83d""#,
      "\"a\tb\"", "\"\u{7F}\"", "\"\u{1}\"", #""\"""#, #""\\""#, #""a" "b""#, #""a"b"#,
      "\"\(String(repeating: "a", count: 1022))\"", "\"\(String(repeating: "a", count: 5000))\"",
    ]
    for token in tokens { try check(token) }
  }

  @Test("a string reads as the parser reads it, with every byte at every place of two words")
  func bytes() throws {
    for byte in UInt8.min...UInt8.max {
      for count in [1, 7, 8, 9, 16, 17] {
        for place in 0..<count {
          var token = Array("\"\(String(repeating: "a", count: count))\"".utf8)
          token[1 + place] = byte
          guard let object = JSONMembers((Array("{\"a\":".utf8) + token + Array("}".utf8))[...]),
            let value = object["a"]
          else { continue }
          let parsed = value.withUnsafeBytes { try? JSONParser.parse($0) }
          #expect(
            object.scalar("a") == parsed.map(\.scalar), "byte \(byte) at \(place) of \(count)")
        }
      }
    }
  }

  @Test("random scalars read as the parser reads them", arguments: UInt64(1)...4)
  func random(seed: UInt64) throws {
    var randomness = SeededRandomness(seed: seed)
    let parts = ["\"", "\\", "a", "0", "1", "9", "-", ".", " ", "u0041", "é", "e", "\u{7F}", "t"]
    for _ in 0..<5_000 {
      let count = Int.random(in: 0...6, using: &randomness)
      let inner = (0..<count).map { _ in parts.randomElement(using: &randomness) ?? "" }.joined()
      try check(Bool.random(using: &randomness) ? "\"\(inner)\"" : inner)
    }
  }

  /// Whatever becomes of the object, a value that it has is what the parser makes of the same bytes.
  private func check(_ token: String) throws {
    guard let object = members("{\"a\":\(token),\"b\":1}"), let bytes = object["a"] else { return }
    let parsed = bytes.withUnsafeBytes { try? JSONParser.parse($0) }
    if let first = bytes.first, first == UInt8(ascii: "{") || first == UInt8(ascii: "[") { return }
    #expect(object.scalar("a") == parsed.map(\.scalar), "\(token)")
    if case .string(let text)?? = parsed.map(\.scalar) { #expect(object.string("a") == text) }
    if case .integer(let number)?? = parsed.map(\.scalar) { #expect(object.integer("a") == number) }
  }

  @Test("a string ends where it does, at every length and with an escape at every place")
  func stringEnds() throws {
    for count in 0...40 {
      for place in 0...count {
        // Bytes next to a quotation mark and a backslash, and of two-byte characters.
        for escape in ["", "\\\"", "\\\\", "!", "#", "[", "]", "é", "¢", "{", ","] {
          let text =
            String(repeating: "a", count: place) + escape
            + String(repeating: "b", count: count - place)
          let object = try #require(members("{\"x\":{\"y\":\"\(text)\"},\"z\":\"\(text)\"}"))
          #expect(object.names == ["x", "z"], "\(text)")
          let value = object["z"].map { String(decoding: $0, as: UTF8.self) }
          #expect(value == "\"\(text)\"", "\(text)")
        }
      }
    }
  }

  @Test("a name is what it spells, and the last of several counts")
  func names() throws {
    let object = try #require(
      members(#" { "a" : 1 , "\u0061b":2,"é":3,"a":4, "":5 , "a\"":6 } "#))
    #expect(object.names == ["a", "ab", "é", "a", "", "a\""])
    #expect(object.integer("a") == 4)
    #expect(object.integer("ab") == 2)
    #expect(object.integer("é") == 3)
    #expect(object.integer("") == 5)
    #expect(object.integer("a\"") == 6)
    #expect(object["\\u0061b"] == nil)
    #expect(object["A"] == nil)
  }

  @Test("an object of more than 4,096 members is none")
  func limit() {
    func object(_ count: Int) -> String {
      "{" + (0..<count).map { "\"k\($0)\":\($0)" }.joined(separator: ",") + "}"
    }
    #expect(members(object(4_096))?.integer("k4095") == 4_095)
    #expect(members(object(4_097)) == nil)
    // What stands in a value does not count.
    #expect(members("{\"d\":\(object(5_000))}")?["d"]?.isEmpty == false)
  }

  @Test(
    "what is no object has no members",
    arguments: [
      "", "{", "}", "[]", "{]", "{\"a\"}", "{\"a\":}", "{\"a\":1", "{\"a\":1,}", "{,}", "{a:1}",
      "{\"a\":1}}", "{\"a\":1} x", "{\"a\" 1}", "{\"\\x\":1}", "{\"\u{1}\":1}", "{\"a:1}", "{\"\\",
      "{\"a\":\"}", "{\"a\":\"\\",
    ])
  func refused(text: String) { #expect(members(text) == nil) }

  @Test("objects and arrays lie within one another up to a depth")
  func depth() {
    func nested(_ count: Int) -> String {
      "{\"a\":" + String(repeating: "[", count: count) + String(repeating: "]", count: count) + "}"
    }
    #expect(members(nested(128)) != nil)
    #expect(members(nested(129)) == nil)
  }
}
