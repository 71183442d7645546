import DendroTestSupport
import Testing

@testable import DendroStorage

@Suite("The seed of a checksum, from the bytes that were hashed")
struct ChecksumSeedTests {
  @Test("up to eight bytes show the seed", arguments: 0...8)
  func found(byteCount: Int) {
    var random = SeededGenerator(seed: UInt64(byteCount))
    for _ in 0..<500 {
      let bytes = (0..<byteCount).map { _ in UInt8(truncatingIfNeeded: random.next()) }
      let seed = random.next()
      bytes.withUnsafeBytes { bytes in
        let checksum = Checksum.xxh3(bytes, seed: seed)
        #expect(
          ChecksumSeed.seed(of: bytes, with: checksum) == seed, "\(Array(bytes)), seed \(seed)")
      }
    }
  }

  @Test("more bytes do not")
  func tooLong() {
    [UInt8](repeating: 1, count: 9).withUnsafeBytes { bytes in
      #expect(ChecksumSeed.seed(of: bytes, with: 5) == nil)
    }
  }
}
