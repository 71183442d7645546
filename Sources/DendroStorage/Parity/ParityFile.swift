/// A parity file whose header and table are right, opened for reading. Any thread may call.
final class ParityFile: Sendable {
  let path: String
  let header: ParityHeader
  private let file: any File
  /// The checksums of the file's blocks, then those of the parity blocks.
  private let checksums: [UInt64]

  var layout: ParityLayout { header.layout }

  /// - Throws: `.corrupt` if it cannot be used; `.unsupportedVersion`, `.unsupportedFeatures`; `.io`.
  /// - Complexity: O(checksums).
  init(_ path: String, _ files: any FileSystem) throws(StorageError) {
    self.path = path
    file = try files.open(at: path, .read)
    header = try Self.header(of: file, path: path)
    let layout = header.layout
    let byteCount = try file.size(path: path)
    // Memory is taken for what the file can hold.
    guard byteCount >= layout.parityOffset else {
      throw .corrupt(
        path: path, offset: byteCount, expected: "\(layout.checksumCount) checksums",
        found: "the end of the file")
    }
    checksums = try Self.checksums(layout, file, path, header.tableChecksum)
  }

  /// Nil if there is none that can be used.
  static func ifUsable(
    _ path: String, _ files: any FileSystem
  ) throws(StorageError) -> ParityFile? {
    do throws(StorageError) {
      return try ParityFile(path, files)
    } catch {
      if case .io(_, _, _, let reason) = error, reason != .noSuchFile, reason != .inputOutput {
        throw error
      }
      return nil
    }
  }

  /// The header alone.
  static func header(_ path: String, _ files: any FileSystem) throws(StorageError) -> ParityHeader {
    try header(of: files.open(at: path, .read), path: path)
  }

  private static func header(
    of file: any File, path: String
  ) throws(StorageError) -> ParityHeader {
    var buffer = RawBuffer()
    buffer.reserve(ParityHeader.byteCount)
    let count = try file.readFully(
      into: UnsafeMutableRawBufferPointer(start: buffer.base, count: ParityHeader.byteCount),
      at: 0, path: path)
    return try ParityHeader(
      decoding: UnsafeRawBufferPointer(start: buffer.base, count: count), path: path)
  }

  private static func checksums(
    _ layout: ParityLayout, _ file: any File, _ path: String, _ expected: UInt64
  ) throws(StorageError) -> [UInt64] {
    var checksums: [UInt64] = []
    checksums.reserveCapacity(Int(layout.checksumCount))
    var hash = ContentHash64()
    var buffer = RawBuffer()
    let pieceByteCount = 1 << 20
    buffer.reserve(pieceByteCount)
    var offset = ParityLayout.tableOffset
    while offset < layout.parityOffset {
      let wanted = Int(min(UInt64(pieceByteCount), layout.parityOffset - offset))
      let count = try file.readFully(
        into: UnsafeMutableRawBufferPointer(start: buffer.base, count: wanted), at: offset,
        path: path)
      guard count == wanted else { break }
      hash.combine(UnsafeRawBufferPointer(start: buffer.base, count: count))
      for place in stride(from: 0, to: count, by: 8) {
        let word = buffer.base.loadUnaligned(fromByteOffset: place, as: UInt64.self)
        checksums.append(UInt64(littleEndian: word))
      }
      offset += UInt64(count)
    }
    let found = hash.finish()
    guard offset == layout.parityOffset, found == expected else {
      throw .corrupt(
        path: path, offset: ParityLayout.tableOffset,
        expected: "a table with the checksum \(hexadecimal(expected))", found: hexadecimal(found))
    }
    return checksums
  }

  func checksum(ofBlock block: UInt64) -> UInt64 { checksums[Int(block)] }

  /// Reads a parity block into memory of the size of a block.
  ///
  /// - Returns: whether it is as it was written.
  /// - Throws: `.io`.
  func readParity(
    _ block: UInt64, into target: UnsafeMutableRawPointer
  ) throws(StorageError) -> Bool {
    let bytes = UnsafeMutableRawBufferPointer(
      start: target, count: ParityLayout.blockByteCount)
    let offset = layout.offset(ofParityBlock: block)
    guard try file.readReadable(into: bytes, at: offset, path: path) == bytes.count else {
      return false
    }
    let expected = checksums[Int(layout.blockCount + block)]
    return Checksum.xxh3(UnsafeRawBufferPointer(bytes), seed: 0) == expected
  }
}

extension File {
  /// As `readFully`, of bytes that the medium may not give back.
  ///
  /// - Returns: nil if it does not.
  func readReadable(
    into buffer: UnsafeMutableRawBufferPointer, at offset: UInt64, path: String
  ) throws(StorageError) -> Int? {
    do throws(StorageError) {
      return try readFully(into: buffer, at: offset, path: path)
    } catch {
      if case .io(_, _, _, .inputOutput) = error { return nil }
      throw error
    }
  }
}
