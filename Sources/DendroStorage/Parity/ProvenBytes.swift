/// The bytes of a segment or a checkpoint that its own format proves right at their places: its header, records with
/// their payloads, chunks.
struct ProvenBytes {
  /// Ascending and apart.
  private(set) var ranges: [Range<UInt64>] = []

  /// - Throws: `.io`, but not if the medium does not give bytes back: then less is proven.
  /// - Complexity: O(bytes of the file).
  init(of name: String, in directory: DatabaseDirectory) throws(StorageError) {
    do throws(StorageError) {
      switch FileName(name) {
      case .segment(let segment): try addRecords(of: segment, directory)
      case .checkpoint(let lsn): try addChunks(ofCheckpoint: lsn, directory)
      default: break
      }
    } catch {
      if case .io(_, _, _, let reason) = error, reason != .inputOutput { throw error }
    }
  }

  /// The proven parts of a range.
  func parts(of range: Range<UInt64>) -> [Range<UInt64>] {
    var (low, high) = (0, ranges.count)
    while low < high {
      let middle = low + (high - low) / 2
      if ranges[middle].upperBound <= range.lowerBound { low = middle + 1 } else { high = middle }
    }
    return ranges[low...].prefix { $0.lowerBound < range.upperBound }.map { $0.clamped(to: range) }
  }

  /// - Parameter range: behind all others.
  private mutating func add(_ range: Range<UInt64>) {
    if let last = ranges.last, last.upperBound == range.lowerBound {
      ranges[ranges.count - 1] = last.lowerBound..<range.upperBound
    } else {
      ranges.append(range)
    }
  }

  private mutating func addRecords(
    of name: SegmentName, _ directory: DatabaseDirectory
  ) throws(StorageError) {
    let segment = try SegmentReader(name, in: directory, isOwn: false)
    let scan = SegmentScan(segment)
    add(0..<scan.offset)
    while let found = try scan.header() {
      switch found {
      case .record(let record):
        if case .success = try segment.payload(of: record) {
          add(record.offset..<record.endOffset)
        } else if record.endOffset <= segment.byteCount {
          try segment.keepUnreadable(record)
        }
        scan.take(record)
      case .invalid:
        let search = try segment.search(from: scan.offset + 1, after: nil, stopsAtFirst: true)
        guard let next = search.firstRecord else { return }
        scan.goOn(at: next)
      }
    }
  }

  private mutating func addChunks(
    ofCheckpoint lsn: LogSequenceNumber, _ directory: DatabaseDirectory
  ) throws(StorageError) {
    let path = directory.path(ofCheckpoint: lsn)
    let file = try directory.fileSystem.open(at: path, .read)
    let byteCount = try file.size(path: path)
    let head = try ParityHeader.head(of: file, path: path)
    let header: CheckpointHeader? = head.withUnsafeBytes {
      try? CheckpointHeader(decoding: $0, path: path)
    }
    guard let header else { return }
    add(0..<UInt64(CheckpointHeader.byteCount))
    var scan = ChunkScan(file, path, byteCount: byteCount, salt: header.salt)
    try scan.run()
    for place in scan.places.values.sorted(by: { $0.offset < $1.offset })
    where !place.isDisplaced {
      add(place.offset..<place.offset + UInt64(place.byteCount))
    }
  }
}
