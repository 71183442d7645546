/// A file for reading whose damaged blocks read as they were. Any thread may call.
///
/// A block is made from others each time that it is read, so that no memory holds the mended ones.
final class MendedFile: File {
  private let file: CoveredFile
  /// The blocks that are made from others, ascending.
  private let blocks: [UInt64]
  /// The length of the file, with the mended blocks that it lacks.
  private let byteCount: UInt64

  init(_ file: CoveredFile, blocks: [UInt64]) {
    self.file = file
    self.blocks = blocks
    let end = blocks.last.map { file.layout.range(ofBlock: $0).upperBound } ?? 0
    byteCount = max(file.byteCount, end)
  }

  func read(
    into buffer: UnsafeMutableRawBufferPointer, at offset: UInt64
  ) throws(SystemError) -> Int {
    guard offset < byteCount, let start = buffer.baseAddress, buffer.count > 0 else { return 0 }
    var end = min(byteCount, offset + UInt64(buffer.count))
    if let block = firstBlock(endingBehind: offset) {
      let range = file.layout.range(ofBlock: block)
      if range.contains(offset) {
        return try read(block, from: offset, to: min(end, range.upperBound), into: start)
      }
      end = min(end, range.lowerBound)
    }
    guard offset < file.byteCount else {
      // Between the end of the file and a mended block behind it.
      start.initializeMemory(as: UInt8.self, repeating: 0, count: Int(end - offset))
      return Int(end - offset)
    }
    return try file.file.read(
      into: UnsafeMutableRawBufferPointer(start: start, count: Int(end - offset)), at: offset)
  }

  private func read(
    _ block: UInt64, from offset: UInt64, to end: UInt64, into target: UnsafeMutableRawPointer
  ) throws(SystemError) -> Int {
    var bytes = RawBuffer()
    bytes.reserve(ParityLayout.blockByteCount)
    do throws(StorageError) {
      // Something has changed since the file was looked through.
      guard try file.mend(block, into: bytes.base) else { throw .unmended(file.path, offset) }
    } catch {
      if case .io(_, _, _, let reason) = error { throw reason }
      throw .inputOutput
    }
    let skipped = Int(offset - file.layout.range(ofBlock: block).lowerBound)
    target.copyMemory(from: bytes.base + skipped, byteCount: Int(end - offset))
    return Int(end - offset)
  }

  /// The first mended block with bytes from `offset` on.
  private func firstBlock(endingBehind offset: UInt64) -> UInt64? {
    var (low, high) = (0, blocks.count)
    while low < high {
      let middle = low + (high - low) / 2
      if file.layout.range(ofBlock: blocks[middle]).upperBound <= offset {
        low = middle + 1
      } else {
        high = middle
      }
    }
    return low < blocks.count ? blocks[low] : nil
  }

  func size() throws(SystemError) -> UInt64 { byteCount }
  func identity() throws(SystemError) -> FileIdentity { try file.file.identity() }

  // MARK: It is only read

  func write(_ bytes: UnsafeRawBufferPointer, at offset: UInt64) throws(SystemError) -> Int {
    throw .readOnly
  }
  func preallocate(from offset: UInt64, count: UInt64) throws(SystemError) { throw .readOnly }
  func truncate(to size: UInt64) throws(SystemError) { throw .readOnly }
  func synchronize() throws(SystemError) { throw .readOnly }
  func lock(_ kind: LockKind) throws(SystemError) -> Bool { throw .notSupported }
  func unlock() {}
}

extension StorageError {
  fileprivate static func unmended(_ path: String, _ offset: UInt64) -> StorageError {
    .io(operation: "read", path: path, offset: offset, error: .inputOutput)
  }
}
