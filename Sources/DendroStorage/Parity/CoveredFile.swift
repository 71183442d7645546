/// A file and its parity: reads the file's blocks, and makes one of them from the others. Any thread may call.
final class CoveredFile: Sendable {
  let path: String
  let file: any File
  /// The length of the file as it is.
  let byteCount: UInt64
  let parity: ParityFile

  var layout: ParityLayout { parity.layout }

  init(_ path: String, _ parity: ParityFile, _ files: any FileSystem) throws(StorageError) {
    self.path = path
    self.parity = parity
    file = try files.open(at: path, .read)
    byteCount = try file.size(path: path)
  }

  /// Reads a block into memory of the size of a block; zeros behind the end of what is covered.
  ///
  /// - Returns: whether it is as it was.
  /// - Throws: `.io`, but not if the medium does not give the bytes back.
  func readBlock(
    _ block: UInt64, into target: UnsafeMutableRawPointer
  ) throws(StorageError) -> Bool {
    let range = layout.range(ofBlock: block)
    let bytes = UnsafeMutableRawBufferPointer(start: target, count: range.count)
    let count = try file.readReadable(into: bytes, at: range.lowerBound, path: path)
    guard count == bytes.count else { return false }
    return isRight(block, target, count: bytes.count)
  }

  /// Compares a block with its checksum.
  ///
  /// - Parameters:
  ///   - target: memory of the size of a block.
  ///   - count: the bytes of the block; zeros are written behind them.
  func isRight(_ block: UInt64, _ target: UnsafeMutableRawPointer, count: Int) -> Bool {
    let size = ParityLayout.blockByteCount
    (target + count).initializeMemory(as: UInt8.self, repeating: 0, count: size - count)
    let whole = UnsafeRawBufferPointer(start: target, count: size)
    return Checksum.xxh3(whole, seed: 0) == parity.checksum(ofBlock: block)
  }

  /// Makes a block from its parity block and the others for which that stands, in memory of the size of a block.
  ///
  /// - Returns: whether it is as it was; false if one of the others is not.
  /// - Throws: as `readBlock(_:into:)`.
  func mend(
    _ block: UInt64, into target: UnsafeMutableRawPointer
  ) throws(StorageError) -> Bool {
    let size = ParityLayout.blockByteCount
    var other = RawBuffer()
    other.reserve(size)
    var next = layout.parityBlock(of: block)
    guard try parity.readParity(next, into: target) else { return false }
    while next < layout.blockCount {
      if next != block {
        guard try readBlock(next, into: other.base) else { return false }
        xor(other.base, into: target, byteCount: size)
      }
      next += layout.parityBlockCount
    }
    return isRight(block, target, count: layout.range(ofBlock: block).count)
  }

  /// The blocks of the file that are not as they were, ascending.
  ///
  /// - Complexity: O(bytes of the file).
  func damagedBlocks() throws(StorageError) -> [UInt64] {
    let size = ParityLayout.blockByteCount
    let runBlockCount: UInt64 = 256
    var buffer = RawBuffer()
    buffer.reserve((Int(runBlockCount) + 1) * size)
    var damaged: [UInt64] = []
    var first: UInt64 = 0
    while first < layout.blockCount {
      let run = min(runBlockCount, layout.blockCount - first)
      let start = layout.range(ofBlock: first).lowerBound
      let wanted = Int(layout.range(ofBlock: first + run - 1).upperBound - start)
      let count = try file.readReadable(
        into: UnsafeMutableRawBufferPointer(start: buffer.base, count: wanted), at: start,
        path: path)
      // A block that is read alone stands behind the run.
      let single = buffer.base + Int(runBlockCount) * size
      for block in first..<first + run {
        let range = layout.range(ofBlock: block)
        var isGood = false
        if count == nil {
          isGood = try readBlock(block, into: single)
        } else if let count, UInt64(count) >= range.upperBound - start {
          single.copyMemory(
            from: buffer.base + Int(range.lowerBound - start), byteCount: range.count)
          isGood = isRight(block, single, count: range.count)
        }
        if !isGood { damaged.append(block) }
      }
      first += run
    }
    return damaged
  }

  /// The parity blocks that are not as they were written, ascending.
  func damagedParityBlocks() throws(StorageError) -> [UInt64] {
    var buffer = RawBuffer()
    buffer.reserve(ParityLayout.blockByteCount)
    var damaged: [UInt64] = []
    for block in 0..<layout.parityBlockCount {
      if try !parity.readParity(block, into: buffer.base) { damaged.append(block) }
    }
    return damaged
  }
}
