/// The same numbers in every run (SplitMix64; Steele, Lea, Flood, OOPSLA 2014).
struct SeededGenerator: RandomNumberGenerator {
  private var state: UInt64

  init(seed: UInt64) { state = seed }

  mutating func next() -> UInt64 {
    state &+= 0x9E37_79B9_7F4A_7C15
    var bits = state
    bits = (bits ^ (bits >> 30)) &* 0xBF58_476D_1CE4_E5B9
    bits = (bits ^ (bits >> 27)) &* 0x94D0_49BB_1331_11EB
    return bits ^ (bits >> 31)
  }

  /// Words of two to nine letters with spaces between them, `byteCount` bytes in all.
  mutating func text(_ byteCount: Int) -> String {
    var bytes: [UInt8] = []
    var rest = 0
    while bytes.count < byteCount {
      if rest == 0 {
        rest = Int.random(in: 2...9, using: &self)
        if !bytes.isEmpty { bytes.append(UInt8(ascii: " ")) }
      } else {
        bytes.append(UInt8.random(in: UInt8(ascii: "a")...UInt8(ascii: "z"), using: &self))
        rest -= 1
      }
    }
    return String(decoding: bytes.prefix(byteCount), as: UTF8.self)
  }
}
