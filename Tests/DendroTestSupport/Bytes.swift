// What tests do with many bytes. Here it is optimized, in the tests it is not.

/// Bytes without a pattern, the same for the same seed.
package func noise(_ count: Int, seed: UInt64) -> [UInt8] {
  var random = SeededGenerator(seed: seed)
  return (0..<count).map { _ in UInt8(truncatingIfNeeded: random.next() >> 56) }
}

/// ASCII letters, digits and signs in which LZ4 finds no pattern, the same for the same seed.
package func noiseText(_ count: Int, seed: UInt64) -> String {
  String(decoding: noise(count, seed: seed).lazy.map { 0x30 + $0 & 0x3F }, as: UTF8.self)
}

/// The payload of a WebSocket's frame, masked or unmasked.
package func masked(_ payload: [UInt8], with mask: [UInt8]) -> [UInt8] {
  payload.indices.map { payload[$0] ^ mask[$0 % mask.count] }
}

/// Where bytes begin within others, from an index on.
package func firstIndex(of part: String, in bytes: [UInt8], from start: Int = 0) -> Int? {
  let part = Array(part.utf8)
  guard bytes.count - start >= part.count else { return nil }
  return (start...bytes.count - part.count).first { index in
    part.indices.allSatisfy { bytes[index + $0] == part[$0] }
  }
}

/// Whether they are the same, one after the other. `==` in a test takes many times as long.
package func areSame(_ first: [[UInt8]], _ second: [[UInt8]]) -> Bool { first == second }

/// A text as JSON.
package func quotedJSON(_ text: String) -> String {
  var json: [UInt8] = [UInt8(ascii: "\"")]
  for byte in text.utf8 {
    switch byte {
    case UInt8(ascii: "\""), UInt8(ascii: "\\"): json += [UInt8(ascii: "\\"), byte]
    case ..<0x20:
      let digits = String(byte, radix: 16)
      json += "\\u\(String(repeating: "0", count: 4 - digits.count))\(digits)".utf8
    default: json.append(byte)
    }
  }
  json.append(UInt8(ascii: "\""))
  return String(decoding: json, as: UTF8.self)
}
