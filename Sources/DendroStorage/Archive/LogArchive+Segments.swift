// How an archive gets segments of the log: their records first, and their seals once their successors are there.

extension LogArchive {
  /// Copies the records of a segment, but for its seal, in place of an older copy with fewer of them.
  func copyRecords(
    of name: SegmentName, _ contents: DatabaseDirectory.Contents, onlyHeader: Bool,
    _ result: inout Extension
  ) throws(StorageError) {
    let isLast = contents.segments.last == name
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
      guard copied.offset < segment.byteCount else { return }
      switch try segment.record(at: copied.offset) {
      case .record(let next): if next.kind == .seal { return }
      case .invalid:
        let search = try segment.search(from: copied.offset, after: nil)
        if search.contentEnd == copied.offset { return }
      }
    }
    let end = try onlyHeader ? UInt64(SegmentHeader.byteCount) : recordsEnd(of: segment, contents)
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

  struct CopiedEnd {
    /// Where the last record ends that is no seal, and that record.
    var offset = UInt64(SegmentHeader.byteCount)
    var last: RecordInfo?
    var lastWrites: RecordInfo?
    var isSealed = false
  }

  /// Where the archive's copy of a segment ends; nil if there is none.
  func copiedEnd(of name: SegmentName) throws(StorageError) -> CopiedEnd? {
    guard try target.contents().segments.contains(name) else { return nil }
    let copy = try SegmentReader(name, in: target)
    var end = CopiedEnd()
    let scan = SegmentScan(copy)
    while let record = try scan.nextHeader() {
      if record.kind == .seal {
        end.isSealed = record.endOffset <= copy.byteCount
        break
      }
      end.last = record
      if record.kind == .writes { end.lastWrites = record }
      end.offset = record.endOffset
    }
    return end
  }

  /// Reads the records of a segment, with their payloads.
  ///
  /// - Returns: where the last whole one ends that is no seal: of the last segment, in front of what a crash or a
  ///   writer leaves unfinished.
  /// - Throws: `.corrupt` if a record is damaged that was durable once: in a segment with a successor, or in
  ///   front of a valid record or a checkpoint that says so.
  private func recordsEnd(
    of segment: SegmentReader, _ contents: DatabaseDirectory.Contents
  ) throws(StorageError) -> UInt64 {
    var previous: (offset: UInt64, isProven: Bool)?
    while true {
      let end = try wholeRecords(of: segment)
      guard let fault = end.fault else { return end.offset }
      if segment.name != contents.segments.last {
        // A segment without a seal is complete if its successor says so.
        let next = try source.contents().segments.first { $0 > segment.name }
        if next?.firstLSN == end.lastLSN.next { return end.offset }
        throw fault
      }
      let search = try segment.search(from: end.offset, after: end.lastLSN)
      let proven = max(
        end.durableUpTo, search.durableUpTo ?? .zero, contents.checkpoints.last ?? .zero)
      let isProven = proven > end.lastLSN
      if search.contentEnd == end.offset, !isProven { return end.offset }
      let tail = LogTail(
        remainder: end.remainder, successor: .none, isNextProvenDurable: isProven)
      // A record that is being written can be read half old, half new, and a later one whole. So the bytes are
      // read again.
      if let previous, previous == (end.offset, isProven) {
        if tail.decision == .corrupt { throw fault }
        return end.offset
      }
      previous = (end.offset, isProven)
      try segment.refresh()
    }
  }

  private struct RecordsEnd {
    var offset = UInt64(SegmentHeader.byteCount)
    var lastLSN: LogSequenceNumber
    /// The last write that one of the records proves durable.
    var durableUpTo = LogSequenceNumber.zero
    /// Why what stands at `offset` is no whole record; nil at a seal.
    var fault: StorageError?
    var remainder = LogTail.Remainder.damaged
  }

  /// Reads the records of a segment up to its seal, or to the first that cannot be read.
  private func wholeRecords(of segment: SegmentReader) throws(StorageError) -> RecordsEnd {
    let scan = SegmentScan(segment)
    var end = RecordsEnd(lastLSN: scan.link.lsn)
    var fault: ReadFault?
    while fault == nil {
      switch try scan.record() {
      case .end: fault = ReadFault(expected: "a record", found: "the end of the file")
      case .invalid(let stop):
        fault = stop.fault
        end.remainder = stop.remainder
      case .record(let record, _):
        if record.kind == .seal { return end }
        scan.take(record)
        end.lastLSN = record.lastLSN
        end.durableUpTo = max(end.durableUpTo, record.durableUpTo)
        end.offset = record.endOffset
      }
    }
    end.fault = fault.map {
      .corrupt(
        path: segment.path, offset: end.offset, expected: $0.expected, found: $0.found)
    }
    return end
  }

  /// Appends the seal of a segment whose successor is in the archive. If a crash cuts that short, the successor
  /// still confirms the segment's end.
  ///
  /// - Returns: false if the source has no seal yet.
  func copySeal(of name: SegmentName, _ result: inout Extension) throws(StorageError) -> Bool {
    guard let copied = try copiedEnd(of: name), !copied.isSealed else { return true }
    let segment = try SegmentReader(name, in: source)
    guard case .record(let seal) = try segment.record(at: copied.offset), seal.kind == .seal,
      seal.endOffset <= segment.byteCount
    else { return false }
    let path = target.path(of: name)
    let file = try target.fileSystem.open(at: path, .readWrite)
    try segment.copy(
      from: copied.offset, to: seal.endOffset, into: file, path: path, at: copied.offset)
    try file.synchronize(path: path)
    result.sealed.append(name)
    result.byteCount += seal.endOffset - copied.offset
    return true
  }

  /// Seals a segment that the source no longer has.
  func seal(_ name: SegmentName, before next: SegmentName, _ result: inout Extension)
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
}
