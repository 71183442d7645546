/// Reads what is left of a damaged checkpoint: each chunk that is right by its own checksums, wherever it is. For
/// `repair`.
///
/// Header, index and footer have a second way each: of a header, a byte that is wrong is put right, and the chunks are
/// found by their own headers. It changes nothing. Several threads may read chunks.
package final class CheckpointSalvage: Sendable {
  private struct Place: Sendable {
    var offset: UInt64
    var byteCount: Int
  }

  package let path: String
  package let header: CheckpointHeader
  /// Nil if it cannot be read.
  package let footer: CheckpointFooter?
  /// What is damaged, but for the chunks.
  package let problems: [LogCursor.Problem]
  /// Whether it is known how many chunks there were; otherwise there are as many as were found.
  package let isChunkCountKnown: Bool
  private let places: [Place?]
  private let file: any File
  private let byteCount: UInt64

  package var chunkCount: Int { places.count }
  package var lsn: LogSequenceNumber { header.lsn }

  /// The header of a checkpoint's file, also if it stands under another name; nil if it cannot be read.
  ///
  /// - Parameters:
  ///   - directory: of the checkpoint.
  ///   - lsn: as the file's name says.
  /// - Throws: `.unsupportedVersion`; `.io`.
  package static func header(
    _ directory: DatabaseDirectory, lsn: LogSequenceNumber
  ) throws(StorageError) -> CheckpointHeader? {
    let path = directory.path(ofCheckpoint: lsn)
    var problems: [LogCursor.Problem] = []
    do throws(StorageError) {
      return try header(try directory.fileSystem.open(at: path, .read), path, lsn, &problems)
    } catch {
      guard case .corrupt = error else { throw error }
      return nil
    }
  }

  /// - Parameters:
  ///   - directory: of the checkpoint.
  ///   - lsn: as the file's name says.
  /// - Throws: `.corrupt` if the header cannot be read, or is that of another file; `.unsupportedVersion`; `.io`.
  /// - Complexity: O(bytes of the file).
  package init(_ directory: DatabaseDirectory, lsn: LogSequenceNumber) throws(StorageError) {
    path = directory.path(ofCheckpoint: lsn)
    file = try directory.fileSystem.open(at: path, .read)
    byteCount = try file.size(path: path)
    var problems: [LogCursor.Problem] = []
    header = try Self.header(file, path, lsn, &problems)
    guard header.lsn == lsn else {
      throw .corrupt(
        path: path, offset: 40, expected: "LSN \(lsn), as the name says", found: "\(header.lsn)")
    }
    var footer: CheckpointFooter?
    do throws(StorageError) {
      footer = try Self.footer(file, path, byteCount, header)
    } catch {
      try Self.note(error, &problems)
    }
    self.footer = footer
    var scan = ChunkScan(file, path, byteCount: byteCount, salt: header.salt)
    try scan.run()
    let known = footer.map { Int($0.chunkCount) } ?? scan.indexChunkCount
    let count = known ?? scan.places.keys.max().map { Int($0) + 1 } ?? 0
    isChunkCountKnown = known != nil
    // A number of chunks that have no room in the file is none.
    let limit = Int(clamping: byteCount / UInt64(ChunkHeader.byteCount)) + 1
    var places: [Place?] = Array(repeating: nil, count: min(count, limit))
    for (number, place) in scan.places where Int(number) < places.count {
      places[Int(number)] = Place(offset: place.offset, byteCount: place.byteCount)
    }
    self.places = places
    if scan.indexChunkCount == nil {
      problems.append(
        LogCursor.Problem(
          path: path, offset: footer?.indexOffset ?? 0, expected: "the index of the chunks",
          found: "other bytes; the chunks were found by their own headers"))
    }
    self.problems = problems
  }

  /// Reads a chunk, whose checksums were compared when the file was opened; its raw bytes are valid during the call
  /// only.
  ///
  /// - Returns: nil if the chunk is lost.
  /// - Throws: `.io`; what `body` throws.
  package func readChunk<R>(
    _ chunk: Int, _ body: (UnsafeRawBufferPointer) throws(StorageError) -> R
  ) throws(StorageError) -> R? {
    guard let place = places[chunk] else { return nil }
    var buffer = RawBuffer()
    buffer.reserve(place.byteCount)
    let count = try file.readFully(
      into: UnsafeMutableRawBufferPointer(start: buffer.base, count: place.byteCount),
      at: place.offset, path: path)
    let bytes = UnsafeRawBufferPointer(start: buffer.base, count: count)
    var decoded = RawBuffer()
    guard let header = ChunkHeader(unchecked: bytes),
      let raw = header.payload(of: bytes, salt: self.header.salt, into: &decoded)
    else { return nil }
    return try body(raw)
  }

  private static func header(
    _ file: any File, _ path: String, _ lsn: LogSequenceNumber,
    _ problems: inout [LogCursor.Problem]
  ) throws(StorageError) -> CheckpointHeader {
    var buffer = RawBuffer()
    buffer.reserve(CheckpointHeader.byteCount)
    let count = try file.readFully(
      into: UnsafeMutableRawBufferPointer(start: buffer.base, count: CheckpointHeader.byteCount),
      at: 0, path: path)
    let bytes = UnsafeRawBufferPointer(start: buffer.base, count: count)
    do throws(StorageError) {
      return try CheckpointHeader(decoding: bytes, path: path)
    } catch {
      guard case .corrupt(_, let offset, let expected, let found) = error else { throw error }
      if let header = correctedByOneBit(bytes, { try? CheckpointHeader(decoding: $0, path: path) })
      {
        problems.append(
          LogCursor.Problem(
            path: path, offset: offset, expected: expected,
            found: "\(found); one bit has changed, and which one is known"))
        return header
      }
      guard let header = try lostHeader(bytes, file, path, lsn) else { throw error }
      problems.append(
        LogCursor.Problem(
          path: path, offset: offset, expected: expected, found: "\(found); what it was is known"))
      return header
    }
  }

  /// A header in which one byte is wrong at most, apart from the magic and the number of the write, which are known. What is found
  /// has the right checksum, and with the salt in it that of the footer is right, too.
  ///
  /// - Parameter bytes: what is left of it.
  /// - Returns: nil if no header is found.
  private static func lostHeader(
    _ bytes: UnsafeRawBufferPointer, _ file: any File, _ path: String, _ lsn: LogSequenceNumber
  ) throws(StorageError) -> CheckpointHeader? {
    guard bytes.count == CheckpointHeader.byteCount else { return nil }
    let byteCount = try file.size(path: path)
    let places = CheckpointHeader.knownPlaces(lsn: lsn)
    // Each of them as it is, and as it should be.
    for chosen in 0..<(1 << places.count) {
      var copy = Array(bytes)
      for (index, place) in places.enumerated() where chosen & 1 << index != 0 {
        copy.replaceSubrange(place.offset..<place.offset + place.bytes.count, with: place.bytes)
      }
      for offset in copy.indices {
        let old = copy[offset]
        for byte in UInt8.min...UInt8.max {
          copy[offset] = byte
          guard copy.withUnsafeBytes(CheckpointHeader.isChecksumRight),
            let header = copy.withUnsafeBytes({ try? CheckpointHeader(decoding: $0, path: path) }),
            header.lsn == lsn, (try? footer(file, path, byteCount, header)) != nil
          else { continue }
          return header
        }
        copy[offset] = old
      }
    }
    return nil
  }

  private static func footer(
    _ file: any File, _ path: String, _ byteCount: UInt64, _ header: CheckpointHeader
  ) throws(StorageError) -> CheckpointFooter {
    let offset = byteCount - min(byteCount, UInt64(CheckpointFooter.byteCount))
    var buffer = RawBuffer()
    buffer.reserve(CheckpointFooter.byteCount)
    let count = try file.readFully(
      into: UnsafeMutableRawBufferPointer(start: buffer.base, count: CheckpointFooter.byteCount),
      at: offset, path: path)
    let bytes = UnsafeRawBufferPointer(start: buffer.base, count: count)
    func decode(_ bytes: UnsafeRawBufferPointer) throws(StorageError) -> CheckpointFooter {
      try CheckpointFooter(decoding: bytes, salt: header.salt, offset: offset, path: path)
    }
    let footer: CheckpointFooter
    do throws(StorageError) {
      footer = try decode(bytes)
    } catch {
      guard let corrected = correctedByOneBit(bytes, { try? decode($0) }) else { throw error }
      footer = corrected
    }
    guard footer.lsn == header.lsn else {
      throw .corrupt(
        path: path, offset: offset + 48, expected: "LSN \(header.lsn), as in the header",
        found: "\(footer.lsn)")
    }
    return footer
  }

  private static func note(
    _ error: StorageError, _ problems: inout [LogCursor.Problem]
  ) throws(StorageError) {
    guard case .corrupt(let path, let offset, let expected, let found) = error else { throw error }
    problems.append(
      LogCursor.Problem(path: path, offset: offset, expected: expected, found: found))
  }
}

/// What `decode` makes of the bytes with one bit changed; nil if it takes none of them.
func correctedByOneBit<Value>(
  _ bytes: UnsafeRawBufferPointer, _ decode: (UnsafeRawBufferPointer) -> Value?
) -> Value? {
  var copy = Array(bytes)
  for bit in 0..<(8 * copy.count) {
    copy[bit / 8] ^= 1 << (bit % 8)
    if let value = copy.withUnsafeBytes(decode) { return value }
    copy[bit / 8] ^= 1 << (bit % 8)
  }
  return nil
}
