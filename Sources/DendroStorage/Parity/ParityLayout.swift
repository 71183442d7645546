/// How a file is divided into blocks, which of them each parity block stands for, and where all of that is in the
/// parity file; see <doc:ParityFormat>.
struct ParityLayout: Hashable, Sendable {
  static let blockByteCount = 4096
  /// The most blocks of the file that one parity block stands for.
  static let groupBlockCountMax: UInt64 = 16

  /// The length of the file.
  let coveredByteCount: UInt64
  /// Blocks of the file; the last one may be shorter.
  let blockCount: UInt64
  let parityBlockCount: UInt64

  init(coveredByteCount: UInt64) {
    self.coveredByteCount = coveredByteCount
    blockCount = coveredByteCount.dividedUp(by: UInt64(Self.blockByteCount))
    parityBlockCount = blockCount.dividedUp(by: Self.groupBlockCountMax)
  }

  /// The bytes of a block of the file.
  func range(ofBlock block: UInt64) -> Range<UInt64> {
    let start = block * UInt64(Self.blockByteCount)
    return start..<min(start + UInt64(Self.blockByteCount), coveredByteCount)
  }

  /// The parity block that stands for a block of the file, with each `parityBlockCount`th of the others.
  func parityBlock(of block: UInt64) -> UInt64 { block % parityBlockCount }

  // MARK: The parity file

  static let tableOffset = UInt64(ParityHeader.byteCount)
  var checksumCount: UInt64 { blockCount + parityBlockCount }
  var parityOffset: UInt64 { Self.tableOffset + 8 * checksumCount }
  var byteCount: UInt64 { parityOffset + parityBlockCount * UInt64(Self.blockByteCount) }

  func offset(ofParityBlock block: UInt64) -> UInt64 {
    parityOffset + block * UInt64(Self.blockByteCount)
  }
}

extension UInt64 {
  fileprivate func dividedUp(by divisor: UInt64) -> UInt64 {
    self / divisor + (isMultiple(of: divisor) ? 0 : 1)
  }
}

/// Adds whole blocks to others, without carry.
func xor(
  _ bytes: UnsafeRawPointer, into sum: UnsafeMutableRawPointer, byteCount: Int
) {
  var offset = 0
  while offset < byteCount {
    let part =
      sum.loadUnaligned(fromByteOffset: offset, as: SIMD8<UInt64>.self)
      ^ bytes.loadUnaligned(fromByteOffset: offset, as: SIMD8<UInt64>.self)
    sum.storeBytes(of: part, toByteOffset: offset, as: SIMD8<UInt64>.self)
    offset &+= MemoryLayout<SIMD8<UInt64>>.size
  }
}
