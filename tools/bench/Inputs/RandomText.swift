extension RandomNumberGenerator {
  /// Returns `byteCount` bytes of random words, which have two to nine letters and spaces between them.
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
