/// SHA-1 (FIPS 180-4), for the hashes that the protocol prescribes; nothing here is meant to be secret.
package struct SHA1 {
  private var state: (UInt32, UInt32, UInt32, UInt32, UInt32) = (
    0x6745_2301, 0xEFCD_AB89, 0x98BA_DCFE, 0x1032_5476, 0xC3D2_E1F0
  )
  /// Bytes that do not fill a block yet.
  private var pending: [UInt8] = []
  private var byteCount: UInt64 = 0

  package init() { pending.reserveCapacity(64) }

  package mutating func update(_ bytes: some Sequence<UInt8>) {
    for byte in bytes {
      pending.append(byte)
      if pending.count == 64 {
        process()
        byteCount += 64
        pending.removeAll(keepingCapacity: true)
      }
    }
  }

  /// The 20 bytes of the digest.
  package consuming func digest() -> [UInt8] {
    let bits = (byteCount + UInt64(pending.count)) * 8
    update(CollectionOfOne(0x80))
    while pending.count != 56 { update(CollectionOfOne(0)) }
    update((0..<8).map { UInt8(truncatingIfNeeded: bits >> (56 - 8 * UInt64($0))) })
    return [state.0, state.1, state.2, state.3, state.4].flatMap { word in
      (0..<4).map { UInt8(truncatingIfNeeded: word >> (24 - 8 * UInt32($0))) }
    }
  }

  private mutating func process() {
    withUnsafeTemporaryAllocation(of: UInt32.self, capacity: 80) { words in
      for index in 0..<16 {
        let start = 4 * index
        words[index] =
          UInt32(pending[start]) << 24 | UInt32(pending[start + 1]) << 16
          | UInt32(pending[start + 2]) << 8 | UInt32(pending[start + 3])
      }
      for index in 16..<80 {
        words[index] = Self.rotate(
          words[index - 3] ^ words[index - 8] ^ words[index - 14] ^ words[index - 16], 1)
      }
      var (a, b, c, d, e) = state
      for index in 0..<80 {
        let (mix, constant): (UInt32, UInt32) =
          switch index {
          case ..<20: ((b & c) | (~b & d), 0x5A82_7999)
          case ..<40: (b ^ c ^ d, 0x6ED9_EBA1)
          case ..<60: ((b & c) | (b & d) | (c & d), 0x8F1B_BCDC)
          default: (b ^ c ^ d, 0xCA62_C1D6)
          }
        let next = Self.rotate(a, 5) &+ mix &+ e &+ constant &+ words[index]
        (a, b, c, d, e) = (next, a, Self.rotate(b, 30), c, d)
      }
      state = (
        state.0 &+ a, state.1 &+ b, state.2 &+ c, state.3 &+ d, state.4 &+ e
      )
    }
  }

  private static func rotate(_ word: UInt32, _ count: UInt32) -> UInt32 {
    word << count | word >> (32 - count)
  }
}
