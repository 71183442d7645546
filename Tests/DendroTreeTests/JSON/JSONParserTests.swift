import DendroTestSupport
import Testing

@testable import DendroTree

@Suite("JSON, read")
struct JSONParserTests {
  @Test(
    "scalars",
    arguments: [
      ("true", Scalar.bool(true)), ("false", .bool(false)), (" \t\r\n1 \n", .integer(1)),
      ("0", .integer(0)), ("-1", .integer(-1)),
      ("9223372036854775807", .integer(.max)), ("-9223372036854775808", .integer(.min)),
      ("9007199254740993", .integer(9_007_199_254_740_993)),
      ("1.5", .double(1.5)), ("-0.1", .double(-0.1)), ("0.1", .double(0.1)),
      ("1e308", .double(1e308)), ("1E+2", .double(100)),
      ("5e-324", .double(.leastNonzeroMagnitude)),
      ("1e-400", .double(0)), ("1.7976931348623157e308", .double(.greatestFiniteMagnitude)),
      ("2.2250738585072014e-308", .double(2.2250738585072014e-308)),
      ("123456789012345678901234567890", .double(0x1.8ee90ff6c373ep+96)),
      ("0.000001", .double(0.000001)), ("1e23", .double(1e23)), ("8.41e21", .double(8.41e21)),
      ("\"\"", .string("")), (#""a\"\\\/\b\f\n\r\tz""#, .string("a\"\\/\u{8}\u{C}\n\r\tz")),
      (#""\u0041\u00e9\u6F22\uD83D\uDE00""#, .string("Aé漢😀")), (#""\u0000""#, .string("\0")),
      ("\"é漢😀\u{7F}\u{2028}\"", .string("é漢😀\u{7F}\u{2028}")),
    ])
  func scalars(text: String, expected: Scalar) throws {
    let node = try JSONParser.parse(text)
    #expect(node == Node(expected))
    #expect(node.scalar == expected)
  }

  @Test("whole numbers are integers as long as they are written so and fit")
  func numberTypes() throws {
    for text in ["1", "-1", "0", "9223372036854775807", "-9223372036854775808"] {
      guard case .integer = try JSONParser.parse(text).scalar else {
        Issue.record("\(text) is no integer")
        continue
      }
    }
    for text in [
      "1.0", "1e3", "9223372036854775808", "-9223372036854775809", "18446744073709551615", "-0",
    ] {
      guard case .double(let value) = try JSONParser.parse(text).scalar else {
        Issue.record("\(text) is no double")
        continue
      }
      #expect(value == Double(text))
    }
  }

  @Test("nothing: null, empty containers, and what holds only such")
  func pruned() throws {
    for text in [
      "null", "{}", "[]", "[null]", #"{"a":null}"#, #"{"a":{},"b":[],"c":{"d":[{}]}}"#,
      #"{".value":null}"#, #"{".value":null,".priority":1}"#, #"{".priority":"x"}"#, "[[],{},null]",
    ] {
      let node = try JSONParser.parse(text)
      #expect(node.isEmpty, "\(text)")
    }
    #expect(try JSONParser.parse(#"{"a":{},"b":1}"#).json() == #"{"b":1}"#)
  }

  @Test(
    "arrays, export form and repeated keys",
    arguments: [
      (#"["a",null,"c"]"#, #"["a",null,"c"]"#),
      (#"[null,null,"c"]"#, #"{"2":"c"}"#),
      (#"["a",[],{}]"#, #"["a"]"#),
      (#"{"x":{".value":5,".priority":7}}"#, #"{"x":{".value":5,".priority":7}}"#),
      (#"{".priority":7,".value":5}"#, #"{".value":5,".priority":7}"#),
      (#"{".value":5,".priority":null}"#, "5"),
      (#"{"b":1,".priority":"p","a":2}"#, #"{"a":2,"b":1,".priority":"p"}"#),
      (#"{"a":1,"a":2}"#, #"{"a":2}"#),
      (#"{"a":1,"a":null,"b":3}"#, #"{"b":3}"#),
      (#"{"a":{"x":1},"a":{"y":1}}"#, #"{"a":{"y":1}}"#),
      (#"{".priority":1,"a":1,".priority":null}"#, #"{"a":1}"#),
      (#"{".value":1,".value":2}"#, "2"),
      (#"{"\u0061":1}"#, #"{"a":1}"#),
      (#"{"\u00e9":1,"e\u0301":2}"#, "{\"e\u{301}\":2,\"\u{e9}\":1}"),
      (#"{"b":1,"10":1,"9":1,"-3":1}"#, #"{"-3":1,"9":1,"10":1,"b":1}"#),
    ])
  func structure(text: String, exported: String) throws {
    #expect(try JSONParser.parse(text).json() == exported)
  }

  /// Text, byte offset, line, column, and a part of what is said.
  static let refused: [(String, Int, Int, Int, String)] = [
    ("", 0, 1, 1, "too early"),
    ("  \n ", 4, 2, 2, "too early"),
    ("\u{FEFF}1", 0, 1, 1, "byte order mark"),
    ("[1,]", 3, 1, 4, "expected a value"),
    (#"{"a":1,}"#, 7, 1, 8, "expected a key"),
    ("{,}", 1, 1, 2, "expected a key"),
    (#"{"a" 1}"#, 5, 1, 6, "expected ':'"),
    (#"{"a":1 "b":2}"#, 7, 1, 8, "expected ','"),
    ("[1 2]", 3, 1, 4, "expected ','"),
    ("[1", 2, 1, 3, "expected ','"),
    ("{\n\"a\": nul\n}", 7, 2, 6, "expected null"),
    ("{\n  \"é\": tru\n}", 10, 2, 8, "expected true"),
    ("truex", 0, 1, 1, "expected true"),
    ("nullnull", 0, 1, 1, "expected null"),
    ("1 2", 2, 1, 3, "nothing may follow"),
    ("{}]", 2, 1, 3, "nothing may follow"),
    ("NaN", 0, 1, 1, "expected a value"),
    ("-Infinity", 1, 1, 2, "expected a digit"),
    ("+1", 0, 1, 1, "expected a value"),
    ("01", 1, 1, 2, "leading zero"),
    ("-01", 2, 1, 3, "leading zero"),
    ("1.", 2, 1, 3, "after the point"),
    (".5", 0, 1, 1, "expected a value"),
    ("1e", 2, 1, 3, "exponent"),
    ("1e+", 3, 1, 4, "exponent"),
    ("1.5.5", 3, 1, 4, "not a number"),
    ("1-2", 1, 1, 2, "not a number"),
    ("1e400", 0, 1, 1, "too large"),
    ("-1e309", 0, 1, 1, "too large"),
    ("'a'", 0, 1, 1, "expected a value"),
    (#"["a]"#, 1, 1, 2, "not closed"),
    ("\"a\nb\"", 2, 1, 3, "control character U+000A"),
    ("\"\u{0}\"", 1, 1, 2, "control character U+0000"),
    (#""\x""#, 1, 1, 2, "no such escape"),
    (#""\u12"#, 1, 1, 2, "hexadecimal"),
    (#""\u12g4""#, 1, 1, 2, "hexadecimal"),
    (#""é\uD800""#, 3, 1, 3, #"\uD800 is half"#),
    (#""\uD800\u0041""#, 1, 1, 2, #"\uD800 is half"#),
    (#""\uDC00""#, 1, 1, 2, #"\uDC00 is half"#),
    (#""\uD83Dx""#, 1, 1, 2, "half"),
    ("/* */1", 0, 1, 1, "expected a value"),
    ("\u{A0}1", 0, 1, 1, "expected a value"),
  ]

  @Test("what is no JSON", arguments: refused)
  func refusedText(text: String, offset: Int, line: Int, column: Int, message: String) {
    let error = #expect(throws: JSONError.self) { try JSONParser.parse(text) }
    #expect(error?.kind == .syntax)
    #expect(error?.position == JSONPosition(offset: offset, line: line, column: column))
    #expect(error?.message.contains(message) == true, "\(error?.message ?? "")")
  }

  static let notUTF8: [[UInt8]] = [
    [0x80], [0xC0, 0x80], [0xC1, 0xBF], [0xC3], [0xC3, 0x28], [0xE0, 0x80, 0x80],
    [0xE0, 0x9F, 0xBF],
    [0xE2, 0x82], [0xED, 0xA0, 0x80], [0xED, 0xBF, 0xBF], [0xF0, 0x80, 0x80, 0x80],
    [0xF0, 0x8F, 0xBF, 0xBF], [0xF4, 0x90, 0x80, 0x80], [0xF5, 0x80, 0x80, 0x80],
    [0xF0, 0x9F, 0x98],
    [0xFE], [0xFF],
  ]

  @Test("bytes that are no UTF-8", arguments: notUTF8)
  func invalidUTF8(sequence: [UInt8]) throws {
    // At the end of the string, before other text, and far from the front.
    for (before, after) in [
      ("", ""), ("a", "bcdefghijk"), (String(repeating: "x", count: 100), "é"),
    ] {
      let text = Array("[\"\(before)".utf8) + sequence + Array("\(after)\"]".utf8)
      let error = #expect(throws: JSONError.self) {
        try text.withUnsafeBytes { bytes in try JSONParser.parse(bytes) }
      }
      #expect(error?.kind == .syntax)
      #expect(error?.message == "not UTF-8")
      #expect(error?.position.offset == 2 + before.utf8.count)
    }
  }

  /// Text, kind, byte offset, path, and a part of what is said.
  static let invalid: [(String, ValidationError.Kind, Int, String, String)] = [
    (#"{"a.b":1}"#, .invalidKey, 1, "/", "a.b"),
    (#"{"x":{"a/b":1}}"#, .invalidKey, 6, "/x", "a/b"),
    (#"{"":1}"#, .invalidKey, 1, "/", ""),
    (#"{"a":{"x$":1}}"#, .invalidKey, 6, "/a", "x$"),
    (##"[0,{"#b":1}]"##, .invalidKey, 4, "/1", "#b"),
    (#"{"[":1}"#, .invalidKey, 1, "/", "["),
    (#"{".foo":1}"#, .invalidKey, 1, "/", ".foo"),
    (#"{"a\u0001":1}"#, .invalidKey, 1, "/", ""),
    (#"{"a\u007f":1}"#, .invalidKey, 1, "/", ""),
    (#"{".sv":"timestamp"}"#, .invalidData, 1, "/", ".sv"),
    (#"{"a":{".sv":{"increment":1}}}"#, .invalidData, 6, "/a", ".sv"),
    (#"{".value":{"a":1}}"#, .invalidLeafValueType, 10, "/", ".value"),
    (#"{".value":[]}"#, .invalidLeafValueType, 10, "/", ".value"),
    (#"{".value":{".sv":"timestamp"}}"#, .invalidLeafValueType, 10, "/", ".value"),
    (#"{".value":1,"a":1}"#, .invalidData, 12, "/", "no other children"),
    (#"{"a":1,".value":1}"#, .invalidData, 7, "/", "no other children"),
    (#"{".priority":true,".value":1}"#, .invalidData, 13, "/", ".priority"),
    (#"{".priority":[1],".value":1}"#, .invalidData, 13, "/", ".priority"),
    (#"{"b":{".priority":{"a":1}}}"#, .invalidData, 18, "/b", ".priority"),
  ]

  @Test("JSON that the tree does not take", arguments: invalid)
  func invalidData(
    text: String, kind: ValidationError.Kind, offset: Int, path: String, message: String
  ) {
    let error = #expect(throws: JSONError.self) { try JSONParser.parse(text) }
    #expect(error?.kind == .data(kind))
    #expect(error?.position.offset == offset)
    #expect(error?.path == path)
    #expect(error?.message.contains(message) == true, "\(error?.message ?? "")")
  }

  @Test("keys and strings at their limits")
  func lengths() throws {
    let key = String(repeating: "k", count: Limits.keyBytes)
    #expect(try JSONParser.parse("{\"\(key)\":1}").childCount == 1)
    #expect(throws: JSONError.self) { try JSONParser.parse("{\"\(key)k\":1}") }

    // Plain, in escapes, and in two-byte scalars.
    let plain = String(repeating: "s", count: Limits.stringBytes)
    #expect(try JSONParser.parse("\"\(plain)\"").scalar == .string(plain))
    let escaped = String(repeating: "\\n", count: Limits.stringBytes)
    #expect(try JSONParser.parse("\"\(escaped)\"").isLeaf)
    for text in ["\"\(plain)s\"", "\"\(escaped)\\n\"", "\"\(plain.dropLast())é\""] {
      let error = #expect(throws: JSONError.self) { try JSONParser.parse(text) }
      #expect(error?.kind == .data(.invalidData))
      #expect(error?.position.offset == 0)
    }
    let digits = String(repeating: "1", count: JSONScanner.numberBytes + 1)
    #expect(throws: JSONError.self) { try JSONParser.parse("0.\(digits)") }
    #expect(try JSONParser.parse("0.\(digits.dropLast(10))").isLeaf)
  }

  @Test(
    "depth 32 is accepted and 33 refused, wherever the document is placed",
    arguments: [0, 1, 31, 32])
  func depth(under depth: Int) throws {
    let levels = Limits.depth - depth
    for (open, close) in [("{\"a\":", "}"), ("[", "]"), ("{\".priority\":1,\"a\":", "}")] {
      func nested(_ count: Int, _ leaf: String) -> String {
        String(repeating: open, count: count) + leaf + String(repeating: close, count: count)
      }
      for leaf in ["1", #"{".value":1,".priority":2}"#] {
        #expect(try !JSONParser.parse(nested(levels, leaf), depth: depth).isEmpty)
        let error = #expect(throws: JSONError.self) {
          try JSONParser.parse(nested(levels + 1, leaf), depth: depth)
        }
        #expect(error?.kind == .data(.invalidData))
      }
      // Far more than any stack holds.
      #expect(throws: JSONError.self) {
        try JSONParser.parse(nested(1_000_000, "1"), depth: depth)
      }
      #expect(throws: JSONError.self) {
        try JSONParser.parse(String(repeating: open, count: 1_000_000), depth: depth)
      }
    }
  }

  @Test("100,000 children of one node")
  func wide() throws {
    var text = "{"
    // Not in order.
    for index in 0..<100_000 {
      if index > 0 { text += "," }
      text += "\"key \(index * 7919 % 100_000)\":\(index)"
    }
    text += "}"
    let node = try JSONParser.parse(text)
    #expect(node.childCount == 100_000)
    #expect(node.child(try Key("key 7919")).scalar == .integer(1))
    #expect(try JSONParser.parse(node.json()) == node)
    let array = "[" + (0..<100_000).map(String.init).joined(separator: ",") + "]"
    #expect(try JSONParser.parse(array).json() == array)
  }

  @Test("every truncation of a document is an error")
  func truncations() throws {
    let text = Array(
      #"{"a":[1,-2.5e3,null,true],"é":{".value":"x\n\uD83D\uDE00é漢😀",".priority":"p"},"z":{}}"#.utf8
    )
    #expect(try text.withUnsafeBytes { bytes in try JSONParser.parse(bytes) }.childCount == 2)
    for count in 0..<text.count {
      #expect(throws: JSONError.self, "\(count)") {
        try text[..<count].withUnsafeBytes { bytes in try JSONParser.parse(bytes) }
      }
      #expect(throws: JSONError.self, "\(count)") {
        try parseInPieces(Array(text[..<count]), pieceBytes: 8, portion: { 3 })
      }
    }
  }

  @Test("random and damaged bytes give a node or an error", arguments: Scale.seeds(8, from: 0))
  func randomAndDamagedBytes(seed: UInt64) throws {
    var generator = JSONGenerator(seed: seed)
    let alphabet = Array("{}[]:,\"\\u0123456789aefnrstld.-+eE \n\u{0}é😀".utf8) + [0xFF, 0xC0, 0x80]
    for _ in 0..<2_000 {
      var text = [UInt8]()
      if generator.below(2) == 0 {
        text = (0..<generator.below(60)).map { _ in alphabet[generator.below(alphabet.count)] }
      } else {
        text = Array(generator.node(levels: 3, width: 3).json().utf8)
        for _ in 0..<(1 + generator.below(3)) where !text.isEmpty {
          switch generator.below(3) {
          case 0: text[generator.below(text.count)] = UInt8(truncatingIfNeeded: generator.next())
          case 1: text.remove(at: generator.below(text.count))
          default:
            text.insert(
              alphabet[generator.below(alphabet.count)], at: generator.below(text.count + 1))
          }
        }
      }
      let whole = Result { try text.withUnsafeBytes { bytes in try JSONParser.parse(bytes) } }
      let pieces = Result { try parseInPieces(text, pieceBytes: 16, portion: { 5 }) }
      switch (whole, pieces) {
      case (.success(let node), .success(let other)):
        try node.checkInvariants(isCompact: true)
        #expect(node == other, "seed \(seed): \(String(decoding: text, as: UTF8.self))")
        #expect(try JSONParser.parse(node.json()) == node)
      case (.failure(let error), .failure(let other)):
        #expect(error as? JSONError == other as? JSONError, "seed \(seed)")
      default: Issue.record("seed \(seed): \(text): \(whole) but \(pieces)")
      }
    }
  }
}
