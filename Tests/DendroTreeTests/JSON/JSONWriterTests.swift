import DendroTestSupport
import Testing

@testable import DendroTree

@Suite("JSON, written")
struct JSONWriterTests {
  static let doubleTexts: [(Double, String)] = [
    (1.0, "1"), (1.5, "1.5"), (-0.0, "0"), (0.1, "0.1"), (-0.1, "-0.1"), (100, "100"),
    (123456789.125, "123456789.125"), (0.000001, "0.000001"), (0.0000012, "0.0000012"),
    (1e-7, "1e-7"), (1.5e-7, "1.5e-7"), (1.25e-10, "1.25e-10"), (.leastNonzeroMagnitude, "5e-324"),
    (1e21, "1e+21"), (1.5e21, "1.5e+21"), (1e22, "1e+22"), (1e20, "100000000000000000000"),
    (123456789012345683968, "123456789012345680000"), (1e308, "1e+308"),
    (Double.greatestFiniteMagnitude, "1.7976931348623157e+308"),
    (-1.2345678901234568e-300, "-1.2345678901234568e-300"), (0.3, "0.3"),
    (0.1 + 0.2, "0.30000000000000004"),
    (2.2250738585072014e-308, "2.2250738585072014e-308"), (1 / 3.0, "0.3333333333333333"),
    (999999999.999999, "999999999.999999"), (4.35, "4.35"), (1e9 + 0.5, "1000000000.5"),
    (0x1p53, "9007199254740992"), (0x1p60, "1152921504606846976"),
    (0x1p63, "9223372036854775808"), (-0x1p63, "-9223372036854775808"),
    (0x1p64, "18446744073709552000"), (9223372036854774784, "9223372036854774784"),
  ]

  @Test("doubles as JavaScript prints them", arguments: doubleTexts)
  func doubles(value: Double, text: String) throws {
    #expect(Node(.double(value)).json() == text)
    #expect(try JSONParser.parse(text) == Node(.double(value)))
  }

  static let integerTexts: [(Int64, String)] = [
    (Int64.max, "9223372036854775807"), (.min, "-9223372036854775808"), (0, "0"), (-1, "-1"),
    (10, "10"), (99, "99"), (100, "100"), (9_007_199_254_740_993, "9007199254740993"),
    (1_000_000_000_000_000_000, "1000000000000000000"),
    (999_999_999_999_999_999, "999999999999999999"),
  ]

  @Test("integers in full", arguments: integerTexts)
  func integers(value: Int64, text: String) throws {
    #expect(Node(.integer(value)).json() == text)
    #expect(try JSONParser.parse(text).scalar == .integer(value))
  }

  @Test("every double comes back equal", arguments: Scale.seeds(20, from: 0))
  func doubleRoundTrip(seed: UInt64) throws {
    var generator = JSONGenerator(seed: seed)
    for _ in 0..<2_000 {
      let bits = generator.next()
      let values: [Double] = [
        Double(bitPattern: bits), Double(Int64(bitPattern: bits)),
        Double(Int64(bitPattern: bits) >> (bits % 60)) / 1000, Double(bits) * 1e10,
        Double(bits % 100_000) / 10_000_000, Double(bits % (1 << 50)) / 1_000_000,
      ]
      for value in values where value.isFinite {
        let text = Node(.double(value)).json()
        #expect(try JSONParser.parse(text) == Node(.double(value)), "seed \(seed): \(value)")
        // The digits are the shortest ones.
        if value.magnitude < 0x1p53 {
          let digits = text.filter(\.isNumber).count
          #expect(digits <= "\(value)".filter(\.isNumber).count + 21, "\(value): \(text)")
        }
      }
    }
  }

  @Test("short decimals are those that the standard library finds")
  func shortest() throws {
    var generator = JSONGenerator(seed: 7)
    for _ in 0..<50_000 {
      let decimals = generator.below(7)
      var value = Double(generator.next() % 1_000_000_000_000)
      for _ in 0..<decimals { value /= 10 }
      // The standard library writes these without exponent too.
      guard value >= 0.0001, value < 1e9, value != value.rounded() else { continue }
      #expect(Node(.double(value)).json() == "\(value)")
    }
  }

  @Test("strings with the escapes that must be, and no others")
  func strings() {
    let cases = [
      ("", #""""#), ("a/b", #""a/b""#), ("\"\\", #""\"\\""#),
      ("\u{0}\u{8}\t\n\u{B}\u{C}\r\u{1F}", #""\u0000\b\t\n\u000b\f\r\u001f""#),
      ("é漢😀\u{7F}\u{2028}", "\"é漢😀\u{7F}\u{2028}\""),
      ("abcdefgh\"ijklmnop\\q", #""abcdefgh\"ijklmnop\\q""#),
    ]
    for (string, text) in cases { #expect(Node(.string(string)).json() == text) }
  }

  @Test(
    "arrays by the rule of dense whole keys",
    arguments: [
      (#"{"0":"a","1":"b","2":"c"}"#, #"["a","b","c"]"#),
      (#"{"0":"a"}"#, #"["a"]"#),
      (#"{"1":"a"}"#, #"[null,"a"]"#),
      (#"{"2":"a"}"#, #"{"2":"a"}"#),
      (#"{"1":"a","2":"b"}"#, #"[null,"a","b"]"#),
      (#"{"2":"a","3":"b"}"#, #"[null,null,"a","b"]"#),
      (#"{"1":"a","3":"b"}"#, #"[null,"a",null,"b"]"#),
      (#"{"0":"a","1":"b","3":"c"}"#, #"["a","b",null,"c"]"#),
      (#"{"0":"a","3":"b"}"#, #"["a",null,null,"b"]"#),
      (#"{"0":"a","4":"b"}"#, #"{"0":"a","4":"b"}"#),
      (#"{"0":"a","5":"b","6":"c"}"#, #"{"0":"a","5":"b","6":"c"}"#),
      (#"{"3":1,"4":1,"5":1}"#, "[null,null,null,1,1,1]"),
      (#"{"4":1,"5":1,"6":1}"#, #"{"4":1,"5":1,"6":1}"#),
      (#"{"0":"a","00":"b"}"#, #"{"0":"a","00":"b"}"#),
      (#"{"1":"a","01":"b"}"#, #"{"1":"a","01":"b"}"#),
      (#"{"-1":"x","0":"y"}"#, #"{"-1":"x","0":"y"}"#),
      (#"{"0":"a","x":"b"}"#, #"{"0":"a","x":"b"}"#),
      (#"{"0":"a","-0":"b"}"#, #"{"0":"a","-0":"b"}"#),
      (#"{"3024":5}"#, #"{"3024":5}"#),
      (#"{"0":{"0":"p","1":"q"}}"#, #"[["p","q"]]"#),
      (#"[{".value":1,".priority":3},2]"#, "[1,2]"),
    ])
  func arrays(text: String, value: String) throws {
    #expect(try JSONParser.parse(text).json(.value) == value)
  }

  @Test("an array stays one in the export form unless its own priority forbids")
  func exportedArrays() throws {
    for text in [
      #"["a",null,"b"]"#, #"[{".value":1,".priority":3},2]"#,
      #"{"0":"a","1":"b",".priority":1}"#, #"{"x":["a"],".priority":1}"#,
    ] {
      #expect(try JSONParser.parse(text).json(.export) == text)
    }
    #expect(
      try JSONParser.parse(#"{"0":"a","1":"b",".priority":1}"#).json(.value) == #"["a","b"]"#)
  }

  @Test("one entry a line")
  func pretty() throws {
    let node = try JSONParser.parse(
      #"{"a":[1,{"b":"x"}],"c":{".value":1,".priority":"p"},"d":{"e":1,".priority":2}}"#)
    #expect(
      node.json(isPretty: true) == """
        {
          "a": [
            1,
            {
              "b": "x"
            }
          ],
          "c": {
            ".value": 1,
            ".priority": "p"
          },
          "d": {
            "e": 1,
            ".priority": 2
          }
        }
        """)
    #expect(Node.empty.json(isPretty: true) == "null")
  }

  @Test("what is written is read as the same tree", arguments: Scale.seeds(200, from: 0))
  func roundTrip(seed: UInt64) throws {
    var generator = JSONGenerator(seed: seed)
    let node = generator.node(levels: 6)
    for isPretty in [false, true] {
      let read = try JSONParser.parse(node.json(isPretty: isPretty))
      #expect(read == node, "seed \(seed)")
      try read.checkInvariants(isCompact: true)
    }
    let value = try JSONParser.parse(node.json(.value))
    #expect(value.json() == node.json(.value), "seed \(seed)")
  }

  @Test("the text leaves in order and in bounded parts; an error of the sink ends it")
  func sink() throws {
    struct Full: Error {}
    let long = String(repeating: "é\n", count: 300_000)
    let node = try JSONParser.parse(
      "[\"x\"," + (0..<20_000).map { "\"entry \($0)\"" }.joined(separator: ",") + "]")
    for node in [node, Node(.string(long))] {
      var bytes = [UInt8]()
      try JSONWriter.write(node) { part in
        #expect(part.count <= 1 << 16)
        bytes.append(contentsOf: part)
      }
      #expect(String(decoding: bytes, as: UTF8.self) == node.json())
      var calls = 0
      #expect(throws: Full.self) {
        try JSONWriter.write(node) { _ in
          calls += 1
          throw Full()
        }
      }
      #expect(calls == 1)
    }
  }
}
