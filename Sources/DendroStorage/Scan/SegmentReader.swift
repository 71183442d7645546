/// Reads one segment's bytes through a window in memory, and the records in them. Not for two threads at
/// once.
final class SegmentReader {
  let name: SegmentName
  let path: String
  let header: SegmentHeader
  private(set) var byteCount: UInt64
  private var file: any File
  private var identity: FileIdentity

  private var buffer = RawBuffer()
  private var windowStart: UInt64 = 0
  private var windowCount = 0
  /// How often the window was moved.
  private(set) var loadCount = 0
  static let windowByteCount = 512 * 1024

  // No access to one of these contains another: so none is checked at run time, once for each record.
  @exclusivity(unchecked) var decompressor = HistoryDecompressor()
  @exclusivity(unchecked) var shortPayload = ShortPayload()

  private let directory: DatabaseDirectory

  /// Opens a segment.
  ///
  /// - Parameters:
  ///   - path: of its file, if that has another name.
  ///   - known: its header, if that of the file is damaged.
  ///   - isOwn: whether the segment has to belong to the directory's database.
  /// - Throws: `.corrupt` if the header is wrong, or another database's; `.unsupportedVersion`; `.io`.
  init(
    _ name: SegmentName, in directory: DatabaseDirectory, at path: String? = nil,
    header known: SegmentHeader? = nil, isOwn: Bool = true
  ) throws(StorageError) {
    self.name = name
    self.directory = directory
    let path = path ?? directory.path(of: name)
    self.path = path
    file = try directory.fileSystem.open(at: path, .read)
    identity = try file.identity(path: path)
    byteCount = try file.size(path: path)
    // The whole of a small segment comes with the read of its header.
    let first = Int(min(byteCount, UInt64(Self.windowByteCount)))
    buffer.reserve(max(first, SegmentHeader.byteCount))
    windowCount = try file.readFully(
      into: UnsafeMutableRawBufferPointer(start: buffer.base, count: first), at: 0, path: path)
    if let known {
      header = known
      return
    }
    header = try SegmentHeader(
      decoding: UnsafeRawBufferPointer(
        start: buffer.base, count: min(windowCount, SegmentHeader.byteCount)), path: path)
    if !directory.mode.isReadOnly { try header.format.checkWritable(path: path) }
    if isOwn { try directory.check(header.databaseID, path: path) }
    guard header.firstLSN == name.firstLSN else {
      throw .corrupt(
        path: path, offset: 40, expected: "first LSN \(name.firstLSN), as the name says",
        found: "\(header.firstLSN)")
    }
  }

  /// Opens the segment of a known header, whatever its file begins with and is named.
  ///
  /// - Throws: `.io`.
  convenience init(
    _ header: SegmentHeader, at path: String, in directory: DatabaseDirectory
  ) throws(StorageError) {
    try self.init(SegmentName(firstLSN: header.firstLSN), in: directory, at: path, header: header)
  }

  /// The file that the segment's path names now.
  enum PathTarget {
    /// The segment: the open file, or its rewrite by a later opener, which is read from now on.
    case same
    /// A segment with another header. The open file is kept.
    case other
    /// None. The open file is kept.
    case removed
  }

  /// Discards the window, and reads the size of the file again.
  ///
  /// If recovery has rewritten the segment and renamed the new file into its place, that is opened: the
  /// records that were read keep their offsets there, and so the history for decompression stays valid.
  @discardableResult
  func refresh() throws(StorageError) -> PathTarget {
    windowCount = 0
    let target = try adoptRewrite()
    byteCount = try file.size(path: path)
    return target
  }

  private func adoptRewrite() throws(StorageError) -> PathTarget {
    let files = directory.fileSystem
    let found: any File
    do throws(StorageError) {
      if try files.identity(at: path) == identity { return .same }
      found = try files.open(at: path, .read)
    } catch {
      if case .io(_, _, _, .noSuchFile) = error { return .removed }
      throw error
    }
    let bytes = try SegmentHeader.bytes(of: found, path: path)
    let foundHeader = try? SegmentHeader(decoding: bytes, path: path)
    guard foundHeader == header else { return .other }
    identity = try found.identity(path: path)
    file = found
    return .same
  }

  /// At least `count` contiguous bytes from `offset` on; fewer if the file ends before. Valid until the
  /// next call.
  func bytes(at offset: UInt64, count: Int) throws(StorageError) -> UnsafeRawBufferPointer {
    guard offset < byteCount else { return UnsafeRawBufferPointer(start: nil, count: 0) }
    let available = UInt64(count) > byteCount - offset ? Int(byteCount - offset) : count
    if offset < windowStart || offset + UInt64(available) > windowStart + UInt64(windowCount) {
      try load(offset, available)
    }
    let start = Int(offset - windowStart)
    return UnsafeRawBufferPointer(
      start: buffer.base + start, count: max(0, windowCount - start))
  }

  private func load(_ offset: UInt64, _ count: Int) throws(StorageError) {
    loadCount += 1
    var kept = 0
    if offset >= windowStart && offset < windowStart + UInt64(windowCount) {
      let start = Int(offset - windowStart)
      kept = windowCount - start
      buffer.base.copyMemory(from: buffer.base + start, byteCount: kept)
    }
    windowStart = offset
    windowCount = kept
    let rest = byteCount - offset
    let wanted = max(count, rest > UInt64(Self.windowByteCount) ? Self.windowByteCount : Int(rest))
    buffer.reserve(wanted, keeping: kept)
    windowCount += try file.readFully(
      into: UnsafeMutableRawBufferPointer(start: buffer.base + kept, count: wanted - kept),
      at: offset + UInt64(kept), path: path)
  }

  // MARK: - Records

  /// What `record(at:)` found at an offset.
  enum Found {
    case record(RecordInfo)
    case invalid(RecordHeader.Fault)

    var record: RecordInfo? {
      if case .record(let record) = self { return record }
      return nil
    }
  }

  /// Decodes the header at `offset`, in bounded time whatever the bytes are.
  ///
  /// - Parameter distance: added to `offset`, modulo 2^64, it gives the offset at which the header was written.
  func record(
    at offset: UInt64, displacedBy distance: UInt64 = 0
  ) throws(StorageError) -> Found {
    let bytes = try bytes(at: offset, count: RecordHeader.byteCountMax)
    switch RecordHeader.decode(bytes, offset: offset &+ distance, segment: header) {
    case .valid(let record, let byteCount, let checksum):
      return .record(
        RecordInfo(
          header: record, segment: name, offset: offset, headerByteCount: byteCount,
          checksum: checksum))
    case .invalid(let fault):
      return .invalid(fault)
    }
  }

  /// The payload of a record, decompressed and checked; valid until the next call. Later payloads are
  /// compressed with it as history: call this for each record, in order.
  func payload(
    of record: RecordInfo
  ) throws(StorageError) -> Result<UnsafeRawBufferPointer, ReadFault> {
    let header = record.header
    let start = record.payloadOffset
    let stored: UnsafeRawBufferPointer
    if header.storedByteCount == 0 {
      stored = UnsafeRawBufferPointer(start: nil, count: 0)
    } else {
      let rest = byteCount > start ? byteCount - start : 0
      guard UInt64(header.storedByteCount) <= rest else {
        return .failure(
          ReadFault(
            expected: "a payload of \(header.storedByteCount) bytes",
            found: "\(rest) bytes to the end of the file", isWhole: false))
      }
      let bytes = try bytes(at: start, count: header.storedByteCount)
      guard bytes.count >= header.storedByteCount else {
        return .failure(
          ReadFault(
            expected: "a payload of \(header.storedByteCount) bytes",
            found: "\(bytes.count) bytes", isWhole: false))
      }
      stored = UnsafeRawBufferPointer(rebasing: bytes[..<header.storedByteCount])
    }
    if header.isRestart {
      decompressor.restart()
      shortPayload.restart()
    }
    let raw: UnsafeRawBufferPointer
    if header.isShort {
      guard let found = shortPayload.found(shared: header.sharedByteCount, stored: stored) else {
        return .failure(
          ReadFault(
            expected: "a payload that shares at most \(shortPayload.byteCount) bytes",
            found: "\(header.sharedByteCount)", isWhole: true))
      }
      raw = found
    } else if header.isCompressed {
      guard let decoded = decompressor.decompress(stored, rawByteCount: header.rawByteCount) else {
        return .failure(
          ReadFault(
            expected: "an LZ4 block of \(header.rawByteCount) bytes", found: "another",
            isWhole: true))
      }
      raw = decoded
    } else {
      raw = stored
    }
    let checksum = Checksum.xxh3(raw, seed: self.header.salt)
    guard header.hasPayload(checksum) else {
      // A second attempt must not decode against these wrong bytes.
      if header.isCompressed { decompressor.forget(raw.count) }
      return .failure(
        ReadFault(
          expected: "payload checksum \(header.payloadDigits(header.payloadChecksum))",
          found: header.payloadDigits(checksum), isWhole: true))
    }
    if !header.isCompressed && !header.isShort && header.kind == .writes {
      decompressor.append(raw: raw)
    }
    guard header.isShort else { return .success(raw) }
    shortPayload.noteFound()
    return .success(shortPayload.whole())
  }

  /// Adds what there is of a payload that `payload(of:)` has just failed to read to the history: later payloads
  /// may refer to the good bytes in it, in front of it and behind it. Their checksums say whether they did.
  func keepUnreadable(_ record: RecordInfo) throws(StorageError) {
    let header = record.header
    guard header.kind == .writes else { return }
    let start = record.payloadOffset
    let stored = UnsafeRawBufferPointer(
      rebasing: try bytes(at: start, count: header.storedByteCount)
        .prefix(header.storedByteCount))
    if header.isCompressed {
      return decompressor.keep(undecodable: stored, rawByteCount: header.rawByteCount)
    }
    guard header.isShort else { return decompressor.append(raw: stored) }
    if shortPayload.found(shared: header.sharedByteCount, stored: stored) != nil {
      shortPayload.noteFound()
    }
  }

  /// Adds the payload of a record whose header is damaged to the history, if what its header says of its
  /// length leads to the next record: later payloads may refer to it. Their checksums say whether it was right.
  func keepDamaged(from start: UInt64, to end: UInt64) throws(StorageError) {
    let bytes = try bytes(at: start, count: RecordHeader.byteCountMax)
    guard
      let (header, byteCount, checksum) = RecordHeader.decodeDisplaced(bytes, segment: self.header)
    else { return }
    let record = RecordInfo(
      header: header, segment: name, offset: start, headerByteCount: byteCount, checksum: checksum)
    guard record.kind == .writes, record.endOffset == end else { return }
    if case .failure = try payload(of: record) { try keepUnreadable(record) }
  }
}
