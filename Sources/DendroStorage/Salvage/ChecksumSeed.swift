/// Computes the seed of an XXH3 checksum from the bytes that were hashed.
///
/// Of up to eight bytes, XXH3 is a chain of steps that can each be taken back (xxhash.h, `XXH3_len_0to16_64b`). So the
/// salt of a segment can be found without its header. What the steps add of XXH3's secret is not written down
/// here: the checksum with seed 0 shows it.
enum ChecksumSeed {
  static let byteCountMax = 8

  /// The seed with which these bytes have this checksum; nil for more than `byteCountMax` bytes.
  static func seed(of bytes: UnsafeRawBufferPointer, with checksum: UInt64) -> UInt64? {
    let unseeded = Checksum.xxh3(bytes, seed: 0)
    switch bytes.count {
    case 0:
      return takeBackAvalanche(checksum) ^ takeBackAvalanche(unseeded)
    case 1...3:
      let count = bytes.count
      let input =
        UInt64(bytes[0]) << 16 | UInt64(bytes[count >> 1]) << 24 | UInt64(bytes[count - 1])
        | UInt64(count) << 8
      return (takeBackAvalanche(checksum) ^ input) &- (takeBackAvalanche(unseeded) ^ input)
    case 4...byteCountMax:
      let first = UInt64(UInt32(littleEndian: bytes.loadUnaligned(as: UInt32.self)))
      let last = UInt64(
        UInt32(
          littleEndian: bytes.loadUnaligned(fromByteOffset: bytes.count - 4, as: UInt32.self)))
      let input = last &+ first << 32
      let secret = takeBackMixing(unseeded, bytes.count) ^ input
      let mixed = secret &- (takeBackMixing(checksum, bytes.count) ^ input)
      return mixed ^ UInt64(UInt32(truncatingIfNeeded: mixed).byteSwapped) << 32
    default:
      return nil
    }
  }

  /// `XXH64_avalanche`, backwards.
  private static func takeBackAvalanche(_ hash: UInt64) -> UInt64 {
    var value = takeBackShift(hash, 32) &* inverse(0x1656_67B1_9E37_79F9)
    value = takeBackShift(value, 29) &* inverse(0xC2B2_AE3D_27D4_EB4F)
    return takeBackShift(value, 33)
  }

  /// `XXH3_rrmxmx`, backwards.
  private static func takeBackMixing(_ hash: UInt64, _ byteCount: Int) -> UInt64 {
    let factor = inverse(0x9FB2_1C65_1E98_DF25)
    var value = takeBackShift(hash, 28) &* factor
    // The sum reaches into no bit that it is made of.
    value ^= (value >> 35) &+ UInt64(byteCount)
    value = value &* factor
    // As a polynomial over two elements, 1 + x^49 + x^24 to the power of 64 is 1 modulo x^64 + 1.
    for _ in 0..<63 { value ^= rotated(value, 49) ^ rotated(value, 24) }
    return value
  }

  private static func rotated(_ value: UInt64, _ count: UInt64) -> UInt64 {
    value &<< count | value &>> (64 - count)
  }

  /// The value that gave `result` as `value ^ value >> count`.
  private static func takeBackShift(_ result: UInt64, _ count: UInt64) -> UInt64 {
    var value = result
    var shift = count
    while shift < 64 {
      value ^= result >> shift
      shift += count
    }
    return value
  }

  /// The inverse of an odd factor modulo 2^64, by Newton's iteration.
  private static func inverse(_ factor: UInt64) -> UInt64 {
    var inverse = factor
    for _ in 0..<6 { inverse = inverse &* (2 &- factor &* inverse) }
    return inverse
  }
}
