import DendroTestSupport
import Testing

@testable import DendroTree

@Suite("JSON, read in pieces")
struct JSONStreamTests {
  @Test("pieces of any size make the same tree", arguments: Scale.seeds(40, from: 0))
  func equalTrees(seed: UInt64) throws {
    var generator = JSONGenerator(seed: seed)
    let node = generator.node(levels: 5)
    for isPretty in [false, true] {
      let text = Array(node.json(isPretty: isPretty).utf8)
      for pieceBytes in [1, 7, 50, 400, Int.max] {
        for portion in [1, 3, 64, 1 << 20] {
          let read = try parseInPieces(text, pieceBytes: pieceBytes, portion: { portion })
          #expect(read == node, "seed \(seed), pieces of \(pieceBytes), portions of \(portion)")
        }
      }
    }
  }

  @Test(
    "a key that comes again replaces what it brought before",
    arguments: [
      #"{"p":{"a":1,"b":2},"p":{"c":3}}"#,
      #"{"p":{"a":1,"b":2},"p":3}"#,
      #"{"p":{"a":1,"b":2},"p":null,"q":1}"#,
      #"{"p":3,"p":{"a":1,"b":2}}"#,
      #"{"p":{".value":3,".priority":9},"p":{"a":1,"b":2}}"#,
      #"{"p":{"a":1,".priority":9},"p":{"b":2}}"#,
      #"{"p":{"a":{"x":1,"y":2}},"q":0,"p":{"a":{"z":1}},"p":{"a":{"w":{"v":1}}}}"#,
      #"{"p":{"a":{"x":1,"y":2}},"p":{"a":null,"b":[1,2,3]},"p":{}}"#,
      #"{"a":1,"a":null,"a":{"b":{"c":{"d":1}}},"a":{"b":{"c":2,"c":{"e":1}}}}"#,
    ])
  func repeatedKeys(text: String) throws {
    let expected = try JSONParser.parse(text)
    // Each size splits elsewhere.
    for pieceBytes in 1...text.utf8.count {
      let read = try parseInPieces(Array(text.utf8), pieceBytes: pieceBytes)
      #expect(read == expected, "pieces of \(pieceBytes)")
    }
  }

  @Test("repeated keys at random", arguments: Scale.seeds(300, from: 0))
  func randomRepetition(seed: UInt64) throws {
    var generator = JSONGenerator(seed: seed)
    func object(_ levels: Int) -> String {
      if levels == 0 || generator.below(5) == 0 {
        return ["1", "null", "{}", "[]", "\"x\"", "[1,null,2]"][generator.below(6)]
      }
      let members = (0..<(1 + generator.below(5))).map { _ in
        "\"\(["a", "b", "c"][generator.below(3)])\":\(object(levels - 1))"
      }
      let priority = generator.below(4) == 0 ? ",\".priority\":\(generator.below(9))" : ""
      return "{" + members.joined(separator: ",") + priority + "}"
    }
    let text = object(5)
    let expected = try JSONParser.parse(text)
    for pieceBytes in [1, 4, 10, 30] {
      let read = try parseInPieces(Array(text.utf8), pieceBytes: pieceBytes, portion: { 11 })
      #expect(read == expected, "seed \(seed), pieces of \(pieceBytes): \(text)")
    }
  }

  @Test("pieces are small, whatever the document")
  func pieceSizes() throws {
    var text = "{\"list\":["
    for index in 0..<20_000 {
      if index > 0 { text += "," }
      text += "{\"number\":\(index),\"name\":\"entry \(index)\",\"tags\":[\"a\",\"b\"]}"
    }
    text += "],\"map\":{"
    for index in 0..<20_000 {
      if index > 0 { text += "," }
      text += "\"k\(index)\":\(index)"
    }
    text += ",\".priority\":1},\"small\":{\"x\":1}}"
    var largest = 0
    var count = 0
    var total = 0
    let node = try parseInPieces(
      Array(text.utf8), pieceBytes: 4096, bufferBytes: 16_384,
      onPiece: { piece in
        count += 1
        total += piece.byteCount
        if case .node(let node) = piece.content { largest = max(largest, node.leafCount()) }
      })
    #expect(try node == JSONParser.parse(text))
    #expect(largest <= 4096 / 2)
    #expect(count >= 40_000)
    #expect(total <= text.utf8.count && total > text.utf8.count / 2)
  }

  @Test("tokens that lie across the buffer's end")
  func boundaries() throws {
    // The buffer has 8,192 bytes at least; strings and white space of growing length shift every
    // token over its end.
    let tail = #","n":-123.456e-7,"t":true,"é漢😀":"\uD83D\uDE00\"é漢😀",".priority":"p"}"#
    let expected = try JSONParser.parse("{\"s\":1" + tail)
    for shift in 0..<80 {
      for filler in [" ", "\n"] {
        let space = String(repeating: filler, count: 8192 - 100 + shift)
        let text = Array("{\"s\":\(space)1\(tail)".utf8)
        #expect(try parseInPieces(text, pieceBytes: Int.max) == expected)
      }
      let string = String(repeating: "x", count: 8192 - 20 + shift) + "é漢😀\\n😀"
      let node = try parseInPieces(Array("[\"\(string)\"]".utf8), pieceBytes: 10)
      #expect(node == (try JSONParser.parse("[\"\(string)\"]")))
    }
  }

  @Test("a long string is read through a small buffer; one too long is refused before it is stored")
  func longStrings() throws {
    let long = String(repeating: "é", count: Limits.stringBytes / 2)
    let node = try parseInPieces(Array("\"\(long)\"".utf8), pieceBytes: 1)
    #expect(node.scalar == .string(long))

    var given = 0
    let error = #expect(throws: JSONError.self) {
      try JSONParser.parse(
        source: { buffer in
          let first = given == 0
          given += buffer.count
          buffer.initializeMemory(as: UInt8.self, repeating: UInt8(ascii: "x"))
          if first { buffer[0] = UInt8(ascii: "\"") }
          return buffer.count
        }, yield: { _ in })
    }
    #expect(error?.kind == .data(.invalidData))
    #expect(given <= Limits.stringBytes + 2 << 20)
  }

  @Test("errors of the source and of the consumer are passed on")
  func outsideErrors() {
    struct Outside: Error, Equatable { var number: Int }
    #expect(throws: Outside(number: 1)) {
      try JSONParser.parse(source: { _ in throw Outside(number: 1) }, yield: { _ in })
    }
    var isGiven = false
    #expect(throws: Outside(number: 2)) {
      try JSONParser.parse(
        source: { buffer in
          guard !isGiven else { return 0 }
          isGiven = true
          buffer[0] = UInt8(ascii: "1")
          return 1
        }, yield: { _ in throw Outside(number: 2) })
    }
  }

  @Test("positions are those of the whole text")
  func positions() throws {
    let lines = (0..<5000).map { "  \"schlüssel \($0)\": \"wört\"," }.joined(separator: "\n")
    let text = "{\n\(lines)\n  \"ü\": 1, \"a.b\": 2\n}"
    let error = #expect(throws: JSONError.self) {
      try parseInPieces(Array(text.utf8), pieceBytes: 100, portion: { 1000 })
    }
    #expect(error?.position.line == 5002)
    #expect(error?.position.column == 11)
    #expect(error?.kind == .data(.invalidKey))
  }
}
