/// A copy of the checkpoints and the log of a database, in a directory of its own, that is extended from time to
/// time: every state that its log reaches can be restored from it.
///
/// The archive has the format of a database, so that all that reads a database reads it. A file appears in it
/// whole, or in place of a shorter copy of the same file, in the order in which a writer makes them: wherever
/// extending ends, the archive is as a writer leaves a directory that was killed at some moment. A mark in the
/// directory keeps openers from writing to it. Not for two threads at once.
package final class LogArchive {
  /// What one extension has added.
  package struct Extension: Sendable, Hashable {
    /// Segments of which something was copied.
    package var segments: [SegmentName] = []
    /// Of these, the ones that are sealed now.
    package var sealed: [SegmentName] = []
    package var checkpoints: [LogSequenceNumber] = []
    /// Bytes that were written.
    package var byteCount: UInt64 = 0
    /// The last write in the archive.
    package var lastLSN = LogSequenceNumber.zero

    package var isEmpty: Bool { segments.isEmpty && checkpoints.isEmpty }
  }

  private let source: DatabaseDirectory
  private let target: DatabaseDirectory
  /// Keeps the log that was not copied yet, beside a writer.
  private var position: PublishedPosition?
  /// Whether the archive is being begun.
  private var isNew: Bool

  /// Opens or begins an archive.
  ///
  /// - Parameters:
  ///   - source: opened for following.
  ///   - path: absolute; of an archive of the same log, or of a directory that holds no database.
  /// - Throws: `.locked` while the archive is being extended; `.io` with `.exists` where a database is there.
  package init(of source: DatabaseDirectory, at path: String) throws(StorageError) {
    self.source = source
    target = try DatabaseDirectory.open(path, environment: source.environment, mode: .archive)
    isNew = try target.contents().isUnfinishedBackup
  }

  package func close() { target.close() }

  /// Copies what the archive does not have yet: records that are whole, and checkpoints where they save replay.
  ///
  /// - Parameter sealedOnly: whether only segments are copied that are sealed; not in a new archive.
  /// - Throws: `.otherLog` where the log does not go on from the archive's end; `.corrupt` where it is damaged.
  /// - Complexity: O(bytes of the last segment of the archive and of those that are new).
  package func extend(sealedOnly: Bool = false) throws(StorageError) -> Extension {
    let lease = try source.lease()
    defer { lease?.end() }
    let contents = try source.contents()
    let archived = try target.contents().segments
    var result = Extension()
    let first = try firstSegment(contents, archived)
    let segments = contents.segments.filter { $0 >= first }
    for (index, name) in segments.enumerated() {
      let isLast = index + 1 == segments.count
      if isLast, sealedOnly, !isNew, !archived.contains(name) {
        // Without it the seal of the one before has no successor: its header at least is copied.
        try copyRecords(of: name, isLast: true, onlyHeader: true, &result)
      } else if !(isLast && sealedOnly && !isNew) {
        try copyRecords(of: name, isLast: isLast, onlyHeader: false, &result)
      }
      if index > 0 {
        try copySeal(of: segments[index - 1], &result)
      } else if let last = archived.last, last < name {
        try seal(last, before: name, &result)
      }
    }
    result.lastLSN = try end(of: target.contents().segments)
    try copyCheckpoints(contents.checkpoints, &result)
    if isNew {
      try target.finishBackup()
      isNew = false
    }
    if position == nil { position = try source.publishPosition(result.lastLSN) }
    position?.move(to: result.lastLSN)
    return result
  }

  // MARK: Where it goes on

  /// The first segment of the source that may have more than the archive.
  private func firstSegment(
    _ contents: DatabaseDirectory.Contents, _ archived: [SegmentName]
  ) throws(StorageError) -> SegmentName {
    guard let first = contents.segments.first else { throw .notFound(path: source.path) }
    guard let last = archived.last else { return first }
    let end = try end(of: archived)
    guard contents.segments.contains(last) else {
      // The writer has removed the segment, of which the archive has all but the seal.
      if first.firstLSN == end.next, try isContinued(last, by: first) { return first }
      throw .otherLog(
        archive: target.path,
        reason: first > last
          ? "\(source.path) no longer has write \(end.next), which follows its last one"
          : "\(source.path) has not its last segment \(last)")
    }
    try checkSame(last)
    // A crash may have come before the seal of the one before.
    let before = archived.dropLast().last { contents.segments.contains($0) }
    return before ?? last
  }

  /// Whether a segment of the source says that it follows the archive's last one.
  private func isContinued(_ last: SegmentName, by next: SegmentName) throws(StorageError) -> Bool {
    let copy = try SegmentReader(last, in: target)
    let checksum = try copiedEnd(of: last)?.last?.checksum ?? copy.header.checksum
    let header = try SegmentReader(next, in: source).header
    return header.previousChecksum == checksum && header.databaseID == copy.header.databaseID
  }

  /// Checks that what is durable of a segment in the archive is what the source has.
  private func checkSame(_ name: SegmentName) throws(StorageError) {
    let copy = try SegmentReader(name, in: target)
    let original = try SegmentReader(name, in: source)
    var durable = name.firstLSN.previous
    var records: [RecordInfo] = []
    var offset = UInt64(SegmentHeader.byteCount)
    while offset < copy.byteCount, case .record(let record) = try copy.record(at: offset) {
      durable = max(durable, record.durableUpTo)
      records.append(record)
      offset = record.endOffset
    }
    let last = records.last { $0.kind == .writes && $0.lastLSN <= durable }
    var isSame = copy.header == original.header
    if isSame, let last {
      isSame = try original.record(at: last.offset).record?.checksum == last.checksum
    }
    guard isSame else {
      throw .otherLog(
        archive: target.path, reason: "\(source.path) has another history since write \(durable)")
    }
  }

  /// The last write of the archive.
  private func end(of segments: [SegmentName]) throws(StorageError) -> LogSequenceNumber {
    guard let last = segments.last else { return .zero }
    return try SegmentOutline(last, in: target).lastLSN
  }

  // MARK: Copying

  /// Copies the records of a segment, but for its seal, in place of an older copy with fewer of them.
  private func copyRecords(
    of name: SegmentName, isLast: Bool, onlyHeader: Bool, _ result: inout Extension
  ) throws(StorageError) {
    let segment = try SegmentReader(name, in: source)
    var copied = try copiedEnd(of: name)
    if let last = copied?.last,
      try segment.record(at: last.offset).record?.checksum != last.checksum
    {
      // The writer has taken back what was not durable.
      copied = nil
    }
    if let copied, copied.isSealed || onlyHeader { return }
    if let copied, isLast || copied.offset >= segment.byteCount {
      // Nothing new is the usual case, and asks for one record's header.
      switch copied.offset < segment.byteCount ? try segment.record(at: copied.offset) : nil {
      case .record(let next) where next.kind != .seal: break
      default: return
      }
    }
    let end = try onlyHeader ? UInt64(SegmentHeader.byteCount) : recordsEnd(of: segment, isLast)
    if let copied, copied.offset >= end { return }
    let file = try NewFile(target.path(of: name), in: target)
    do throws(StorageError) {
      try segment.copy(from: 0, to: end, into: file.file, path: file.temporaryPath)
      try file.publish()
    } catch {
      file.discard()
      throw error
    }
    result.segments.append(name)
    result.byteCount += end
  }

  private struct CopiedEnd {
    /// Where the last record ends that is no seal, and that record.
    var offset = UInt64(SegmentHeader.byteCount)
    var last: RecordInfo?
    var isSealed = false
  }

  /// Where the archive's copy of a segment ends; nil where there is none.
  private func copiedEnd(of name: SegmentName) throws(StorageError) -> CopiedEnd? {
    guard try target.contents().segments.contains(name) else { return nil }
    let copy = try SegmentReader(name, in: target)
    var end = CopiedEnd()
    while end.offset < copy.byteCount, case .record(let record) = try copy.record(at: end.offset) {
      if record.kind == .seal {
        end.isSealed = record.endOffset <= copy.byteCount
        break
      }
      end.last = record
      end.offset = record.endOffset
    }
    return end
  }

  /// Reads the records of a segment, with their payloads.
  ///
  /// - Returns: where the last whole one ends that is no seal.
  /// - Throws: `.corrupt` where a segment that has a successor does not reach it.
  private func recordsEnd(of segment: SegmentReader, _ isLast: Bool) throws(StorageError) -> UInt64
  {
    var offset = UInt64(SegmentHeader.byteCount)
    var fault = ("a record", "the end of the file")
    var lastLSN = segment.name.firstLSN.previous
    reading: while offset < segment.byteCount {
      switch try segment.record(at: offset) {
      case .invalid(let found):
        fault = (found.expected, found.description)
        break reading
      case .record(let record):
        if record.kind == .seal { return offset }
        guard record.endOffset <= segment.byteCount else { break reading }
        if case .failure(let found) = try segment.payload(of: record) {
          fault = (found.expected, found.found)
          break reading
        }
        lastLSN = record.lastLSN
        offset = record.endOffset
      }
    }
    if isLast { return offset }
    // A segment without a seal is complete where its successor says so.
    let next = try source.contents().segments.first { $0 > segment.name }
    guard next?.firstLSN == lastLSN.next else {
      throw .corrupt(path: segment.path, offset: offset, expected: fault.0, found: fault.1)
    }
    return offset
  }

  /// Appends the seal of a segment whose successor is in the archive. Where a crash cuts that short, the successor
  /// still confirms the segment's end.
  private func copySeal(of name: SegmentName, _ result: inout Extension) throws(StorageError) {
    guard let copied = try copiedEnd(of: name), !copied.isSealed else { return }
    let segment = try SegmentReader(name, in: source)
    guard case .record(let seal) = try segment.record(at: copied.offset), seal.kind == .seal,
      seal.endOffset <= segment.byteCount
    else { return }
    let path = target.path(of: name)
    let file = try target.fileSystem.open(at: path, .readWrite)
    try segment.copy(
      from: copied.offset, to: seal.endOffset, into: file, path: path, at: copied.offset)
    try file.synchronize(path: path)
    result.sealed.append(name)
    result.byteCount += seal.endOffset - copied.offset
  }

  /// Seals a segment that the source no longer has.
  private func seal(_ name: SegmentName, before next: SegmentName, _ result: inout Extension)
    throws(StorageError)
  {
    guard let copied = try copiedEnd(of: name), !copied.isSealed else { return }
    let segment = try SegmentReader(name, in: target)
    let successor = try SegmentReader(next, in: source).header
    let path = target.path(of: name)
    let file = try target.fileSystem.open(at: path, .readWrite)
    let end = try appendSeal(
      file: file, path: path, segment: segment.header, offset: copied.offset,
      checksum: copied.last?.checksum ?? segment.header.checksum, lastLSN: next.firstLSN.previous,
      time: successor.baseTime, successorChecksum: successor.checksum)
    try file.synchronize(path: path)
    result.sealed.append(name)
    result.byteCount += end - copied.offset
  }

  /// Copies checkpoints: of a new archive all, later one where the log since the last is longer than it.
  private func copyCheckpoints(
    _ checkpoints: [LogSequenceNumber], _ result: inout Extension
  ) throws(StorageError) {
    let contents = try target.contents()
    let reached = checkpoints.filter { $0 <= result.lastLSN && !contents.checkpoints.contains($0) }
    if isNew {
      for lsn in reached { try copyCheckpoint(lsn, &result) }
      return
    }
    let last = contents.checkpoints.last ?? .zero
    guard let newest = reached.last, newest > last else { return }
    var logByteCount: UInt64 = 0
    for segment in contents.segments where segment.firstLSN > last && segment.firstLSN <= newest {
      logByteCount += try target.byteCount(of: segment)
    }
    guard logByteCount > (try source.byteCount(ofCheckpoint: newest)) else { return }
    try copyCheckpoint(newest, &result)
  }

  private func copyCheckpoint(_ lsn: LogSequenceNumber, _ result: inout Extension)
    throws(StorageError)
  {
    let checkpoint = try CheckpointReader.open(source, lsn: lsn)
    for chunk in 0..<checkpoint.chunkCount { try checkpoint.readChunk(chunk) { _ in } }
    let path = source.path(ofCheckpoint: lsn)
    let original = try source.fileSystem.open(at: path, .read)
    let byteCount = try original.size(path: path)
    let file = try NewFile(target.path(ofCheckpoint: lsn), in: target)
    do throws(StorageError) {
      var buffer = RawBuffer()
      buffer.reserve(Self.copiedByteCount)
      var offset: UInt64 = 0
      while offset < byteCount {
        let part = UnsafeMutableRawBufferPointer(start: buffer.base, count: Self.copiedByteCount)
        let count = try original.readFully(into: part, at: offset, path: path)
        guard count > 0 else { break }
        try file.file.writeAll(
          UnsafeRawBufferPointer(start: buffer.base, count: count), at: offset,
          path: file.temporaryPath)
        offset += UInt64(count)
      }
      try file.publish()
    } catch {
      file.discard()
      throw error
    }
    result.checkpoints.append(lsn)
    result.byteCount += byteCount
  }

  private static let copiedByteCount = 1 << 20
}
