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
    /// Bytes that were written of segments and checkpoints.
    package var byteCount: UInt64 = 0
    /// Bytes that were written of their parity.
    package var parityByteCount: UInt64 = 0
    /// The last write in the archive.
    package var lastLSN = LogSequenceNumber.zero

    package var isEmpty: Bool { segments.isEmpty && checkpoints.isEmpty }
  }

  let source: DatabaseDirectory
  let target: DatabaseDirectory
  /// Keeps the log that was not copied yet, beside a writer: also from a purge.
  private var position: PublishedPosition?
  /// Whether the archive is being begun.
  var isNew: Bool
  /// Whether each file gets parity.
  let keepsParity: Bool
  /// Whether the last extension has left each file with parity of its whole length.
  var isParityComplete = false
  /// The last segment of the source, if all segments before it are in the archive with their seals.
  private var reachedSegment: SegmentName?
  /// The last write in the archive, as far as this object has extended it.
  private var reachedLSN = LogSequenceNumber.zero

  /// Opens or begins an archive.
  ///
  /// - Parameters:
  ///   - source: opened for following.
  ///   - path: absolute; of an archive of the same log, or of a directory that holds no database.
  ///   - parity: whether each file gets parity. Without it, files that change lose theirs, or keep an older one.
  /// - Throws: `.locked` while the archive is being extended; `.io` with `.exists` if a database is there.
  package init(
    of source: DatabaseDirectory, at path: String, parity: Bool = true
  ) throws(StorageError) {
    self.source = source
    keepsParity = parity
    target = try DatabaseDirectory.open(path, environment: source.environment, mode: .archive)
    isNew = try target.contents().isUnfinishedBackup
    // From now on, not from the end of the first extension on. What cannot be read is for that to report.
    if !isNew, let segments = try? target.contents().segments, let end = try? end(of: segments) {
      position = try source.publishPosition(end, of: .archive)
    }
  }

  package func close() {
    position = nil
    target.close()
  }

  /// Copies what the archive does not have yet: records that are whole, and checkpoints if they save replay.
  ///
  /// - Parameter sealedOnly: whether only segments are copied that are sealed; not in a new archive.
  /// - Throws: `.otherLog` if the log does not go on from the archive's end; `.corrupt` if it is damaged.
  /// - Complexity: O(bytes of the last segment of the archive and of those that are new). With `sealedOnly` one
  ///   listing of the source, if no segment was sealed since the last extension.
  package func extend(sealedOnly: Bool = false) throws(StorageError) -> Extension {
    do throws(StorageError) {
      return try copyNew(sealedOnly: sealedOnly)
    } catch {
      isParityComplete = false
      // Nothing more comes from this log: it is not kept for the archive any more.
      if case .otherLog = error { position = nil }
      throw error
    }
  }

  private func copyNew(sealedOnly: Bool) throws(StorageError) -> Extension {
    if sealedOnly, let reachedSegment, try source.contents().segments.last == reachedSegment {
      return Extension(lastLSN: reachedLSN)
    }
    reachedSegment = nil
    let lease = try source.lease()
    defer { lease?.end() }
    let contents = try source.contents()
    let archived = try target.contents().segments
    var result = Extension()
    let first = try firstSegment(contents, archived)
    let segments = contents.segments.filter { $0 >= first }
    var isSealed = true
    for (index, name) in segments.enumerated() {
      let isLast = index + 1 == segments.count
      if isLast, sealedOnly, !isNew, !archived.contains(name) {
        // Without it the seal of the one before has no successor: its header at least is copied.
        try copyRecords(of: name, contents, onlyHeader: true, &result)
      } else if !(isLast && sealedOnly && !isNew) {
        try copyRecords(of: name, contents, onlyHeader: false, &result)
      }
      if index > 0 {
        isSealed = try copySeal(of: segments[index - 1], &result)
      } else if let last = archived.last, last < name {
        try seal(last, before: name, &result)
      }
    }
    result.lastLSN = try end(of: target.contents().segments)
    try copyCheckpoints(contents.checkpoints, &result)
    try updateParity(&result)
    if isNew {
      try target.finishBackup()
      isNew = false
    }
    if position == nil {
      position = try source.publishPosition(result.lastLSN, of: .archive)
    }
    position?.move(to: result.lastLSN)
    reachedLSN = result.lastLSN
    // A seal that is not there yet is copied by a later extension.
    if isSealed { reachedSegment = segments.last }
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
      if first.firstLSN == end.next, try continues(last, with: first) { return first }
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

  /// Whether a segment of the source says that it follows the archive's last one. If an idle record stands
  /// between the two, the archive gets it.
  ///
  /// The idle record that an orderly end or idleness leaves follows from the record before it. The checksum in
  /// the successor's header proves that it was the same.
  private func continues(_ last: SegmentName, with next: SegmentName) throws(StorageError) -> Bool {
    let copy = try SegmentReader(last, in: target).header
    let header = try SegmentReader(next, in: source).header
    guard header.databaseID == copy.databaseID, let copied = try copiedEnd(of: last) else {
      return false
    }
    let checksum = copied.last?.checksum ?? copy.checksum
    if header.previousChecksum == checksum { return true }
    guard !copied.isSealed, let writes = copied.lastWrites else { return false }
    let idle = RecordHeader.idle(
      after: writes.lastLSN, time: writes.baseTime, durableUpTo: writes.lastLSN,
      previousChecksum: checksum, in: copy)
    var bytes = RawBuffer()
    bytes.reserve(RecordHeader.byteCountMax)
    let (byteCount, idleChecksum) = idle.encode(
      at: bytes.base, offset: copied.offset, segment: copy)
    guard header.previousChecksum == idleChecksum else { return false }
    let path = target.path(of: last)
    let file = try target.fileSystem.open(at: path, .readWrite)
    try file.writeAll(
      UnsafeRawBufferPointer(start: bytes.base, count: byteCount), at: copied.offset, path: path)
    // The successor denies the segment without it.
    try file.synchronize(path: path)
    return true
  }

  /// Checks that what is durable of a segment in the archive is what the source has.
  private func checkSame(_ name: SegmentName) throws(StorageError) {
    let copy = try SegmentReader(name, in: target)
    let original = try SegmentReader(name, in: source)
    var durable = name.firstLSN.previous
    var records: [RecordInfo] = []
    let scan = SegmentScan(copy)
    while let record = try scan.nextHeader() {
      durable = max(durable, record.durableUpTo)
      records.append(record)
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
}
