import Synchronization

/// Reads a checkpoint. Header, footer and index are checked when it is opened, each chunk when it is read.
///
/// Several threads may read different chunks, or the same.
package final class CheckpointReader: Sendable {
  private struct Entry: Sendable {
    var offset: UInt64
    var byteCount: Int
    var rawByteCount: Int
  }

  package let path: String
  package let header: CheckpointHeader
  package let footer: CheckpointFooter
  /// The size of the file.
  package let byteCount: UInt64
  /// Nil once it is closed.
  private let file: Mutex<(any File)?>
  private let entries: [Entry]

  package var lsn: LogSequenceNumber { header.lsn }
  package var databaseID: DatabaseID { header.databaseID }
  package var time: Int64 { header.time }
  package var leafCount: UInt64 { footer.leafCount }
  package var contentHash: UInt64 { footer.contentHash }
  /// Whether its chunks hold the second root, too.
  package var hasSecondRoot: Bool { header.format.hasSecondRoot }
  package var chunkCount: Int { entries.count }
  /// Raw bytes of all chunks.
  package var rawByteCount: UInt64 { footer.rawByteCount }

  /// - Throws: `.corrupt`, `.unsupportedVersion`, `.io`.
  /// - Complexity: O(chunks).
  package static func open(_ directory: DatabaseDirectory, lsn: LogSequenceNumber)
    throws(StorageError) -> CheckpointReader
  {
    let reader = try CheckpointReader(
      directory.path(ofCheckpoint: lsn), lsn, directory.fileSystem,
      isReadOnly: directory.mode.isReadOnly)
    try directory.check(reader.databaseID, path: reader.path)
    return reader
  }

  private init(
    _ path: String, _ lsn: LogSequenceNumber, _ files: any FileSystem, isReadOnly: Bool
  ) throws(StorageError) {
    self.path = path
    let file = try files.open(at: path, .read)
    self.file = Mutex(file)
    let size = try file.size(path: path)
    byteCount = size
    var buffer = RawBuffer()
    let head = try Self.read(file, path, size, &buffer, at: 0, count: CheckpointHeader.byteCount)
    let header = try CheckpointHeader(decoding: head, path: path)
    if !isReadOnly { try header.format.checkWritable(path: path) }
    self.header = header
    guard header.lsn == lsn else {
      throw .corrupt(
        path: path, offset: 40, expected: "LSN \(lsn), as the name says", found: "\(header.lsn)")
    }

    let fixed = UInt64(
      CheckpointHeader.byteCount + CheckpointFooter.byteCount + ChunkHeader.byteCount)
    guard size >= fixed else {
      throw .corrupt(
        path: path, offset: size, expected: "a file of \(fixed) bytes or more",
        found: "\(size) bytes")
    }
    let footerOffset = size - UInt64(CheckpointFooter.byteCount)
    let foot = try Self.read(
      file, path, size, &buffer, at: footerOffset, count: CheckpointFooter.byteCount)
    let footer = try CheckpointFooter(
      decoding: foot, salt: header.salt, offset: footerOffset, path: path)
    self.footer = footer
    guard footer.lsn == header.lsn else {
      throw .corrupt(
        path: path, offset: footerOffset + 48, expected: "LSN \(header.lsn), as in the header",
        found: "\(footer.lsn)")
    }
    let (indexEnd, overflow) = footer.indexOffset.addingReportingOverflow(
      UInt64(footer.indexByteCount))
    guard
      !overflow && indexEnd == footerOffset
        && footer.indexOffset >= UInt64(CheckpointHeader.byteCount)
    else {
      throw .corrupt(
        path: path, offset: footerOffset + 8, expected: "an index that ends at \(footerOffset)",
        found: "one of \(footer.indexByteCount) bytes at \(footer.indexOffset)")
    }
    // What the chunks and their entries take at least and at most bounds what is read before it can be checked.
    let hasPaths = header.format.version == 0
    let chunkBytes =
      max(footer.indexOffset, UInt64(CheckpointHeader.byteCount))
      - UInt64(CheckpointHeader.byteCount)
    let rawByteLimit =
      hasPaths
      ? Compression.rawByteLimit : Int(footer.chunkCount) * ChunkHeader.entryByteCountMax
    guard UInt64(footer.chunkCount) <= chunkBytes / UInt64(ChunkHeader.byteCount),
      Int(footer.indexByteCount) <= ChunkHeader.byteCountMax(rawByteCount: rawByteLimit)
    else {
      throw .corrupt(
        path: path, offset: footerOffset + 16,
        expected: "an index of chunks that have room in \(chunkBytes) bytes",
        found: "\(footer.indexByteCount) bytes for \(footer.chunkCount) chunks")
    }
    let index = try Self.payload(
      file, path, size, at: footer.indexOffset, byteCount: Int(footer.indexByteCount),
      isIndex: true, number: footer.chunkCount, salt: header.salt
    ) { (bytes) throws(StorageError) in Array(bytes) }
    entries = try Self.entries(index, footer, hasPaths: hasPaths, path)
  }

  /// Closes the file: from then on no chunk can be read. Chunks that are being read are read to their end.
  package func close() {
    let file = file.withLock { file in
      defer { file = nil }
      return file
    }
    // Not under the lock: if the file was removed, its space is freed.
    withExtendedLifetime(file) {}
  }

  /// The raw size of a chunk, known without reading it.
  package func rawByteCount(ofChunk chunk: Int) -> Int { entries[chunk].rawByteCount }

  /// The chunks, as the index has them.
  var outline: [AnnotatedCheckpoint.Chunk] {
    entries.map { .init(offset: $0.offset, byteCount: $0.byteCount, rawByteCount: $0.rawByteCount) }
  }

  /// Where a chunk begins in the file.
  package func offset(ofChunk chunk: Int) -> UInt64 { entries[chunk].offset }

  /// Reads and checks one chunk; its raw bytes are valid during the call only.
  ///
  /// - `chunk`: 0 ..< `chunkCount`.
  /// - Throws: `.corrupt`, `.io`; also if the file was closed.
  package func readChunk<R>(
    _ chunk: Int, _ body: (UnsafeRawBufferPointer) throws(StorageError) -> R
  ) throws(StorageError) -> R {
    let entry = entries[chunk]
    guard let file = file.withLock({ $0 }) else {
      throw .io(operation: "read", path: path, offset: entry.offset, error: .closed)
    }
    return try Self.payload(
      file, path, footer.indexOffset, at: entry.offset, byteCount: entry.byteCount,
      isIndex: false, number: UInt32(chunk), rawByteCount: entry.rawByteCount, salt: header.salt,
      body)
  }

  // MARK: - Parts

  /// - Parameter hasPaths: whether each entry has a path, as in format version 0.
  private static func entries(
    _ index: [UInt8], _ footer: CheckpointFooter, hasPaths: Bool, _ path: String
  ) throws(StorageError) -> [Entry] {
    func corrupt(_ expected: String, _ found: String) -> StorageError {
      .corrupt(path: path, offset: footer.indexOffset, expected: expected, found: found)
    }
    // Each entry takes two bytes or more: bounds the count before memory is taken for it.
    guard Int(footer.chunkCount) <= index.count / 2 else {
      throw corrupt(
        "an index of \(footer.chunkCount) chunks", "\(index.count) bytes, too few for it")
    }
    var entries: [Entry] = []
    entries.reserveCapacity(Int(footer.chunkCount))
    var offset = UInt64(CheckpointHeader.byteCount)
    var raw: UInt64 = 0
    var fault: String?
    index.withUnsafeBytes { bytes in
      var reader = ByteReader(bytes)
      do throws(ByteError) {
        for number in 0..<footer.chunkCount {
          let byteCount = try reader.varint()
          let rawByteCount = try reader.varint()
          let pathByteCount = hasPaths ? try reader.varint() : 0
          guard
            byteCount >= UInt64(ChunkHeader.byteCount)
              && byteCount <= footer.indexOffset - offset
              && byteCount <= ChunkHeader.byteCountMax(rawByteCount: Int(clamping: rawByteCount))
              && rawByteCount <= UInt64(ChunkHeader.rawByteLimit)
          else {
            fault = "chunk \(number) of \(byteCount) bytes, \(rawByteCount) raw, at \(offset)"
            return
          }
          _ = try reader.bytes(Int(clamping: pathByteCount))
          entries.append(
            Entry(offset: offset, byteCount: Int(byteCount), rawByteCount: Int(rawByteCount)))
          offset += byteCount
          raw += rawByteCount
        }
        if !reader.isAtEnd {
          fault = "\(reader.remaining) bytes behind the last chunk's entry"
        }
      } catch {
        fault = error.description
      }
    }
    if let fault { throw corrupt("an index of \(footer.chunkCount) chunks", fault) }
    guard offset == footer.indexOffset else {
      throw corrupt("chunks up to the index at \(footer.indexOffset)", "their end at \(offset)")
    }
    guard raw == footer.rawByteCount else {
      throw corrupt("\(footer.rawByteCount) raw bytes in all, as in the footer", "\(raw)")
    }
    return entries
  }

  /// Reads what a chunk header announces; `limit` is where the file ends, or what may be read of it.
  private static func payload<R>(
    _ file: any File, _ path: String, _ limit: UInt64, at offset: UInt64, byteCount: Int,
    isIndex: Bool, number: UInt32, rawByteCount: Int? = nil, salt: UInt64,
    _ body: (UnsafeRawBufferPointer) throws(StorageError) -> R
  ) throws(StorageError) -> R {
    var buffer = RawBuffer()
    let bytes = try read(file, path, limit, &buffer, at: offset, count: byteCount)
    let header = try ChunkHeader(
      decoding: bytes, isIndex: isIndex, salt: salt, offset: offset, path: path)
    guard
      header.storedByteCount == byteCount - ChunkHeader.byteCount && header.number == number
        && (rawByteCount == nil || header.rawByteCount == rawByteCount)
    else {
      throw .corrupt(
        path: path, offset: offset + 8,
        expected: "chunk \(number) of \(byteCount - ChunkHeader.byteCount) bytes, as in the index",
        found: "chunk \(header.number) of \(header.storedByteCount) bytes")
    }
    let stored = UnsafeRawBufferPointer(rebasing: bytes[ChunkHeader.byteCount...])
    var decoded = RawBuffer()
    var raw = stored
    if header.isCompressed {
      decoded.reserve(header.rawByteCount)
      guard
        Compression.decompress(
          stored, into: decoded.base, rawByteCount: header.rawByteCount,
          history: UnsafeRawBufferPointer(start: nil, count: 0))
      else {
        throw .corrupt(
          path: path, offset: offset + UInt64(ChunkHeader.byteCount),
          expected: "an LZ4 block of \(header.rawByteCount) bytes", found: "another")
      }
      raw = UnsafeRawBufferPointer(start: decoded.base, count: header.rawByteCount)
    }
    let checksum = Checksum.xxh3(raw, seed: salt)
    guard checksum == header.payloadChecksum else {
      throw .corrupt(
        path: path, offset: offset + UInt64(ChunkHeader.byteCount),
        expected: "payload checksum \(hexadecimal(header.payloadChecksum))",
        found: hexadecimal(checksum))
    }
    return try body(raw)
  }

  /// Exactly `count` bytes; the place is compared with the file's size before memory is taken.
  private static func read(
    _ file: any File, _ path: String, _ limit: UInt64, _ buffer: inout RawBuffer, at offset: UInt64,
    count: Int
  ) throws(StorageError) -> UnsafeRawBufferPointer {
    let rest = limit > offset ? limit - offset : 0
    guard UInt64(count) <= rest else {
      throw .corrupt(
        path: path, offset: offset, expected: "\(count) bytes", found: "\(rest) bytes")
    }
    buffer.reserve(count)
    let found = try file.readFully(
      into: UnsafeMutableRawBufferPointer(start: buffer.base, count: count), at: offset, path: path)
    guard found == count else {
      throw .corrupt(
        path: path, offset: offset, expected: "\(count) bytes", found: "\(found) bytes")
    }
    return UnsafeRawBufferPointer(start: buffer.base, count: count)
  }
}
