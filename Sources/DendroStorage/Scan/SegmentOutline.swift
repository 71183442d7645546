/// What the headers of one segment say; no payload is decompressed. For tools.
package struct SegmentOutline: Sendable {
  package let header: SegmentHeader
  package let byteCount: UInt64
  /// The records at which decompression can begin, in the order of their offsets.
  package private(set) var restarts: [RecordInfo] = []
  package private(set) var recordCount = 0
  package private(set) var writeCount = 0
  /// Bytes of records with writes, headers included, and of their payloads before compression.
  package private(set) var recordByteCount: UInt64 = 0
  package private(set) var rawByteCount: UInt64 = 0
  package private(set) var lastLSN: LogSequenceNumber
  /// All writes up to here were durable, as the headers say, also those behind damage.
  package private(set) var durableUpTo: LogSequenceNumber
  /// The base times of the first and the last record with writes.
  package private(set) var firstTime: Int64?
  package private(set) var lastTime: Int64?
  package private(set) var isSealed = false
  /// Why the last bytes are no record; nil if all of the segment was read.
  package private(set) var problem: LogCursor.Problem?

  /// - Throws: `.corrupt` if the segment's header cannot be read; `.io`.
  /// - Complexity: O(bytes of the segment).
  package init(_ name: SegmentName, in directory: DatabaseDirectory) throws(StorageError) {
    let segment = try SegmentReader(name, in: directory)
    header = segment.header
    byteCount = segment.byteCount
    lastLSN = header.firstLSN.previous
    // All records before a segment were synchronized before it was made.
    durableUpTo = lastLSN
    let scan = SegmentScan(segment)
    while !isSealed {
      switch try scan.header() {
      case nil: return
      case .record(let record):
        guard record.endOffset <= segment.byteCount else {
          problem = LogCursor.Problem(
            path: segment.path, offset: record.offset,
            expected: "a payload of \(record.header.storedByteCount) bytes",
            found: "the end of the file")
          return
        }
        note(record)
        scan.take(record)
      case .invalid(let fault):
        let search = try segment.search(from: scan.offset, after: lastLSN)
        durableUpTo = max(durableUpTo, search.durableUpTo ?? .zero)
        guard search.contentEnd > scan.offset || search.firstRecord != nil else { return }
        problem = LogCursor.Problem(
          path: segment.path, offset: scan.offset, expected: fault.expected,
          found: fault.description)
        return
      }
    }
  }

  private mutating func note(_ record: RecordInfo) {
    recordCount += 1
    writeCount += record.count
    lastLSN = max(lastLSN, record.lastLSN)
    durableUpTo = max(durableUpTo, record.durableUpTo)
    switch record.kind {
    case .seal: isSealed = true
    case .idle: break
    case .writes:
      if record.header.isRestart { restarts.append(record) }
      recordByteCount += record.endOffset - record.offset
      rawByteCount += UInt64(record.header.rawByteCount)
      firstTime = firstTime ?? record.baseTime
      lastTime = record.baseTime
    }
  }
}
