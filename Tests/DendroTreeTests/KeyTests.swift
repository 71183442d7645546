import DendroTree
import DendroTestSupport
import Testing

@Suite struct KeyTests {
  static let mixed = [
    "-2147483648", "-5", "-1", "0", "-0", "00", "-00", "000", "3", "03", "003", "5", "9", "10",
    "20", "100", "2147483647", " ", "-", "-2147483649", "1a", "2147483648", "A", "Z", "_", "a",
    "a1", "a10", "a2", "bar", "f", "foo", "~", "é", "\u{10000}", "\u{E000}",
  ]

  @Test(
    "keys sort as the tables say",
    arguments: [
      mixed,
      [
        "-3", "0", "-0", "7", "07", "007", "10", " 1", "+1", "1e3", "2147483648", "Z", "b", "z",
        "é", "😀", "Ａ",
      ],
      ["e\u{301}", "z", "é", "\u{10000}", "\u{E000}"],
      ["-3", "7", "007", "9", "10", "1a", "a"],
      ["-256", "-255", "-1", "1", "255", "256", "65535", "65536", "16777215", "16777216"],
      ["3", "00000000003", "4", "000000000003"],  // Twelve characters are no integer.
      ["퟿", "\u{10FFFF}", "\u{E000}", "\u{FFFF}"],
    ])
  func order(sorted: [String]) throws {
    let keys = try sorted.map { try Key($0) }
    for (i, a) in keys.enumerated() {
      #expect(a.string == sorted[i])
      #expect(a.string.utf8.elementsEqual(sorted[i].utf8))
      for (j, b) in keys.enumerated() {
        #expect((a < b) == (i < j), "\(sorted[i]) < \(sorted[j])")
        #expect((a == b) == (i == j))
      }
    }
  }

  @Test(
    "ordered bytes are as the article says",
    arguments: [
      ("5", [0x11, 0x05]), ("0", [0x10]), ("-0", [0x10, 0x04]), ("00", [0x10, 0x05]),
      ("-1", [0x0E, 0xFE]), ("-2147483648", [0x0B, 0x7F, 0xFF, 0xFF, 0xFF]),
      ("256", [0x12, 0x01, 0x00]), ("05", [0x11, 0x05, 0x05]), ("-05", [0x0E, 0xFA, 0x06]),
      ("a", [0x61]), ("\u{E000}", [0xF3, 0x80, 0x80]), ("\u{10000}", [0xEE, 0x90, 0x80, 0x80]),
    ] as [(String, [UInt8])])
  func orderedBytes(string: String, bytes: [UInt8]) throws {
    let key = try Key(string)
    #expect(key.withOrderedBytes { Array($0) } == bytes)
    #expect(bytes.withUnsafeBytes { Key(orderedBytes: $0) } == key)
  }

  @Test(
    "bytes that no key has are refused",
    arguments: [
      [], [0x35], [0x10, 0x03], [0x11, 0x00], [0x11], [0x12, 0x00, 0x05], [0x0F], [0x15, 1, 1, 1],
      [0x14, 0x80, 0, 0, 0], [0x11, 0x05, 0x03], [0x11, 0x05, 0x19], [0x61, 0x2F], [0x61, 0x7F],
      [0xFF], [0x80], [0xEE], [0xF3, 0x80], [0x0A, 1, 1, 1, 1, 1], [0x1F],
      [0x0B, 0x7F, 0xFF, 0xFF, 0xFE],
    ] as [[UInt8]])
  func refused(bytes: [UInt8]) {
    #expect(bytes.withUnsafeBytes { Key(orderedBytes: $0) } == nil)
  }

  @Test("every first byte of a character, whatever follows it: refused or the form of one key")
  func everyFirstByte() throws {
    for first in UInt8(0x20)...0xFF {
      for next: [UInt8] in [[], [0x80], [0x9F, 0x8C], [0xBC, 0xA1], [0x9F, 0x8C, 0xB2]] {
        let bytes = [first] + next
        guard let key = bytes.withUnsafeBytes({ Key(orderedBytes: $0) }) else { continue }
        #expect(try Key(key.string).withOrderedBytes { Array($0) } == bytes)
      }
    }
  }

  @Test(
    "every byte string is refused or the form of exactly one key",
    arguments: 1...8 as ClosedRange<UInt64>)
  func everyByteStringOrRefused(seed: UInt64) throws {
    var random = SeededGenerator(seed: seed)
    let bytes: [UInt8] = [
      0x0B, 0x0E, 0x10, 0x11, 0x12, 0x14, 0, 4, 5, 7, 0x30, 0x35, 0x2D, 0x61, 0xC3, 0xA9, 0xEE,
      0xF3, 0x80, 0xFF,
    ]
    for _ in 0..<3_000 {
      let drawn = (0..<random.below(7)).map { _ in bytes[random.below(bytes.count)] }
      guard let key = drawn.withUnsafeBytes({ Key(orderedBytes: $0) }) else { continue }
      #expect(try Key(key.string).withOrderedBytes { Array($0) } == drawn)
    }
  }

  @Test(
    "what the rules forbid is refused",
    arguments: [
      "", "a[", "]", "a.b", "#", "$x", "a/b", "\u{0}", "a\u{1F}", "\u{7F}", "\n",
      String(repeating: "k", count: 769), String(repeating: "é", count: 385),
    ])
  func forbidden(string: String) {
    #expect { try Key(string) } throws: { ($0 as? ValidationError)?.kind == .invalidKey }
  }

  @Test("the longest key, keys around 23 bytes, and their order")
  func lengths() throws {
    var last: Key?
    for count in [1, 7, 8, 22, 23, 24, 25, 100, 127, 128, 767, 768] {
      let string = String(repeating: "k", count: count)
      let key = try Key(string)
      #expect(key.string == string)
      #expect(key.orderedByteCount == count)
      let again = try Key(string)
      #expect(key == again && key.hashValue == again.hashValue)
      if let last { #expect(last < key) }
      last = key
    }
    #expect(
      try Key(String(repeating: "k", count: 24)) < Key(String(repeating: "k", count: 23) + "l"))
  }

  @Test(
    "bytes that are no UTF-8 are refused",
    arguments: [
      [0xC3], [0xC0, 0x80], [0xED, 0xA0, 0x80], [0xF5, 0x80, 0x80, 0x80], [0x61, 0xFF],
    ] as [[UInt8]])
  func notUTF8(bytes: [UInt8]) {
    #expect(throws: ValidationError.self) {
      try bytes.withUnsafeBytes { bytes throws(ValidationError) in try Key(utf8: bytes) }
    }
  }
}
