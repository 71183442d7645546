// Records at any place of a segment's file.

extension SegmentReader {
  /// What a search does behind a place.
  enum SearchStep {
    case next
    case stop
    /// It goes on at this offset, which is behind the place.
    case jump(to: UInt64)
  }

  /// Looks at each place from `offset` on at which a record may begin.
  ///
  /// - Parameter look: gets the bytes from there on, all of a header at least if the file does not end before, and their
  ///   offset. It may read others.
  /// - Returns: the end of the last byte that is not zero; `offset` if all are. Bytes that were not searched may count.
  /// - Complexity: linear in the bytes, beside what `look` does.
  @discardableResult
  func lookForRecords(
    from offset: UInt64,
    _ look: (UnsafeRawBufferPointer, UInt64) throws(StorageError) -> SearchStep
  ) throws(StorageError) -> UInt64 {
    var contentEnd = offset
    var place = offset
    while place < byteCount {
      // A header may reach over the window's end, so that the last bytes are searched with the next window.
      let bytes = try bytes(at: place, count: RecordHeader.byteCountMax)
      if bytes.isEmpty { break }
      let isLast = place + UInt64(bytes.count) >= byteCount
      let end = isLast ? bytes.count : max(1, bytes.count - RecordHeader.byteCountMax)
      if let last = lastNonZero(bytes, end) {
        contentEnd = max(contentEnd, place + UInt64(last) + 1)
      }
      let window = loadCount
      var next = place + UInt64(end)
      var magics = ByteSearch(
        for: (RecordHeader.magic.0, RecordHeader.shortMagic), in: bytes, to: end)
      looking: while let index = magics.next() {
        let found = place + UInt64(index)
        switch try look(UnsafeRawBufferPointer(rebasing: bytes[index...]), found) {
        case .stop: return contentEnd
        case .jump(let target):
          next = target
          break looking
        case .next where loadCount == window: break
        case .next:
          // `look` has read bytes that are not in the window.
          next = found + 1
          break looking
        }
      }
      place = next
    }
    return contentEnd
  }

  /// A crash leaves at most a batch and preallocated space. A longer tail is not searched, so that a hostile
  /// file cannot cause a hang.
  private static let tailByteLimit: UInt64 = 1 << 30

  /// What a search of the rest of the file found.
  struct Search {
    /// The end of the last byte that is not zero; the search's start if all are.
    var contentEnd: UInt64
    /// The highest durable-up-to of any valid header, at its own offset or displaced.
    var durableUpTo: LogSequenceNumber?
    /// The highest of displaced headers.
    var displacedUpTo: LogSequenceNumber?
    /// The last write of any valid record.
    var lastSurvivor: LogSequenceNumber?
    /// The offset of the first valid header.
    var firstRecord: UInt64?
  }

  /// Searches every offset from `offset` to the end of the file for valid headers.
  ///
  /// - Complexity: linear in the bytes, also if they were made to look like headers: each offset costs at
  ///   most one header's checksum, and no length is followed.
  /// - `lsn`: the last write that was read, to find displaced records that prove a later one durable. Nil:
  ///   displaced records are not searched for.
  /// - `stopsAtFirst`: whether the search ends at the first valid header.
  func search(
    from offset: UInt64, after lsn: LogSequenceNumber?, stopsAtFirst: Bool = false
  ) throws(StorageError) -> Search {
    let tailByteCount = byteCount - min(offset, byteCount)
    guard tailByteCount <= Self.tailByteLimit else {
      throw .corrupt(
        path: path, offset: offset,
        expected:
          "at most \(Self.tailByteLimit) bytes behind the last record, more than a crash leaves",
        found: "\(tailByteCount)")
    }
    var found = Search(contentEnd: offset)
    var displacements = Displacements(
      header, byteCount: tailByteCount, next: offset, distanceMax: 1 << 20)
    found.contentEnd = try lookForRecords(from: offset) { (bytes, place) throws(StorageError) in
      switch RecordHeader.decode(bytes, offset: place, segment: header) {
      case .invalid:
        guard let lsn else { return .next }
        let durable = try displacements.durableUpTo(bytes, at: place, of: self, after: lsn)
        if let durable {
          found.durableUpTo = max(found.durableUpTo ?? .zero, durable)
          found.displacedUpTo = max(found.displacedUpTo ?? .zero, durable)
        }
      case .valid(let record, _, _):
        if found.firstRecord == nil { found.firstRecord = place }
        found.durableUpTo = max(found.durableUpTo ?? .zero, record.durableUpTo)
        if record.count > 0 {
          found.lastSurvivor = max(found.lastSurvivor ?? .zero, record.lastLSN)
        }
        if stopsAtFirst { return .stop }
      }
      return .next
    }
    return found
  }
}
