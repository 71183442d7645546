/// Writes the parity of a file beside it.
///
/// A pass makes some MiB of parity: of each group of blocks it reads those for which these stand. All passes
/// together read the file once, whatever its size, so that memory holds two runs of blocks and the checksums.
final class ParityWriter {
  /// Blocks that are read, and made, at once.
  static let runBlockCount: UInt64 = 1024

  private let source: any File
  private let path: String
  private let parityPath: String
  private let layout: ParityLayout
  /// What the file had before, as far as it is to be compared.
  private let old: ParityFile?
  private let runBlockCount: UInt64
  private var blocks = RawBuffer()
  private var parity = RawBuffer()
  /// The table as it stands in the file.
  private var table = RawBuffer()

  /// - Parameters:
  ///   - name: of a segment or a checkpoint that nothing is written to meanwhile.
  ///   - directory: of the file.
  ///   - runBlockCount: blocks of parity that one pass makes.
  init(
    of name: String, in directory: DatabaseDirectory, runBlockCount: UInt64 = runBlockCount
  ) throws(StorageError) {
    path = directory.path + "/" + name
    parityPath = directory.path + "/" + FileName.parityName(of: name)
    source = try directory.fileSystem.open(at: path, .read)
    layout = ParityLayout(coveredByteCount: try source.size(path: path))
    self.runBlockCount = runBlockCount
    let old = try ParityFile.ifUsable(parityPath, directory.fileSystem)
    self.old = try old?.header.head == ParityHeader.head(of: source, path: path) ? old : nil
    let run = Int(min(runBlockCount, max(1, layout.parityBlockCount)))
    blocks.reserve(run * ParityLayout.blockByteCount)
    parity.reserve(run * ParityLayout.blockByteCount)
    table.reserve(Int(8 * layout.checksumCount))
  }

  /// Writes the file; durable with its name when it returns.
  ///
  /// - Returns: how many bytes it has.
  /// - Throws: `.corrupt` if the bytes of which the present parity was made are not as they were, or not all there: it
  ///   stays, since it is what may mend them. `.io`.
  func write(in directory: DatabaseDirectory) throws(StorageError) -> UInt64 {
    if let old, old.layout.coveredByteCount > layout.coveredByteCount {
      throw .corrupt(
        path: path, offset: layout.coveredByteCount,
        expected: "the \(old.layout.coveredByteCount) bytes of which \(parityPath) was made",
        found: "the end of the file")
    }
    let target = try NewFile(parityPath, in: directory)
    do throws(StorageError) {
      var first: UInt64 = 0
      while first < layout.parityBlockCount {
        let count = min(runBlockCount, layout.parityBlockCount - first)
        try makeParity(first, count: count)
        try target.file.writeAll(
          UnsafeRawBufferPointer(
            start: parity.base, count: Int(count) * ParityLayout.blockByteCount),
          at: layout.offset(ofParityBlock: first), path: target.temporaryPath)
        first += count
      }
      let checksums = UnsafeRawBufferPointer(
        start: table.base, count: Int(8 * layout.checksumCount))
      try target.file.writeAll(
        checksums, at: ParityLayout.tableOffset, path: target.temporaryPath)
      var bytes = ByteWriter()
      ParityHeader(
        layout: layout, head: try ParityHeader.head(of: source, path: path),
        tableChecksum: Checksum.xxh3(checksums, seed: 0)
      ).encode(into: &bytes)
      try target.file.writeAll(bytes.bytes, at: 0, path: target.temporaryPath)
      try target.publish()
    } catch {
      target.discard()
      throw error
    }
    return layout.byteCount
  }

  /// Makes some parity blocks, and notes the checksums of them and of the blocks for which they stand.
  private func makeParity(_ first: UInt64, count: UInt64) throws(StorageError) {
    let size = ParityLayout.blockByteCount
    parity.base.initializeMemory(as: UInt8.self, repeating: 0, count: Int(count) * size)
    var start = first
    while start < layout.blockCount {
      let run = min(count, layout.blockCount - start)
      try read(start, count: run)
      for index in 0..<Int(run) {
        let block = UnsafeRawBufferPointer(start: blocks.base + index * size, count: size)
        try note(Checksum.xxh3(block, seed: 0), ofBlock: start + UInt64(index))
      }
      xor(blocks.base, into: parity.base, byteCount: Int(run) * size)
      start += layout.parityBlockCount
    }
    for index in 0..<Int(count) {
      let block = UnsafeRawBufferPointer(start: parity.base + index * size, count: size)
      store(Checksum.xxh3(block, seed: 0), at: layout.blockCount + first + UInt64(index))
    }
  }

  /// Reads some blocks of the file; zeros behind its end.
  private func read(_ first: UInt64, count: UInt64) throws(StorageError) {
    let start = layout.range(ofBlock: first).lowerBound
    let byteCount = Int(layout.range(ofBlock: first + count - 1).upperBound - start)
    let found = try source.readFully(
      into: UnsafeMutableRawBufferPointer(start: blocks.base, count: byteCount), at: start,
      path: path)
    guard found == byteCount else {
      throw .corrupt(
        path: path, offset: start + UInt64(found),
        expected: "bytes up to \(layout.coveredByteCount), as before", found: "the end of the file")
    }
    let rest = Int(count) * ParityLayout.blockByteCount - byteCount
    (blocks.base + byteCount).initializeMemory(as: UInt8.self, repeating: 0, count: rest)
  }

  private func note(_ checksum: UInt64, ofBlock block: UInt64) throws(StorageError) {
    store(checksum, at: block)
    guard let old else { return }
    let range = layout.range(ofBlock: block)
    // The last block of a file that has grown is another one.
    guard old.layout.blockCount > block, old.layout.range(ofBlock: block) == range,
      old.checksum(ofBlock: block) != checksum
    else { return }
    throw .corrupt(
      path: path, offset: range.lowerBound, expected: "the bytes of which \(parityPath) was made",
      found: "others")
  }

  private func store(_ checksum: UInt64, at index: UInt64) {
    table.base.storeBytes(
      of: checksum.littleEndian, toByteOffset: Int(8 * index), as: UInt64.self)
  }
}
