/// Where a segment's records stand in its file, whatever was done to the file's bytes.
///
/// Each record is recognized by its own header, at the offset at which it was written or at another one: bytes that
/// are removed from a file or inserted into it displace all that stands behind them. Payloads are not looked at.
struct SegmentMap: Sendable {
  /// Records that stand one behind the other, and each of which follows the one before it.
  struct Stretch: Sendable {
    var start: UInt64
    var end: UInt64
    /// Added to an offset in the file, modulo 2^64, it gives the one at which the bytes were written.
    var distance: UInt64
    var first: RecordHeader
    /// The last write of its records; the one before `first` if none has one.
    var lastLSN: LogSequenceNumber
    /// The header checksum of its last record.
    var checksum: UInt32

    var firstLSN: LogSequenceNumber { first.firstLSN }
    var isDisplaced: Bool { distance != 0 }
  }

  /// Bytes that are no record at their place.
  struct Fault: Sendable {
    var start: UInt64
    var end: UInt64
    var expected: String
    var found: String
  }

  /// The last record before the seal.
  struct End: Sendable {
    var lastLSN: LogSequenceNumber
    var checksum: UInt32
    /// The record's base time, milliseconds since 1970.
    var time: Int64
  }

  /// In the order of their first writes.
  fileprivate(set) var stretches: [Stretch] = []
  /// In the order of the file. Zeros at its end are none.
  fileprivate(set) var faults: [Fault] = []
  /// Nil if there is no record.
  fileprivate(set) var end: End?
  /// Writes up to here were durable, as the headers say.
  fileprivate(set) var durableUpTo: LogSequenceNumber
  /// Behind the last byte that is not zero.
  fileprivate(set) var contentEnd = UInt64(SegmentHeader.byteCount)

  fileprivate init(_ header: SegmentHeader) {
    // All records before a segment were synchronized before it was made.
    durableUpTo = header.firstLSN.previous
  }

  /// - Throws: `.io`.
  /// - Complexity: O(bytes of the segment), and a bounded number of distances tried for displaced records.
  static func make(of segment: SegmentReader) throws(StorageError) -> SegmentMap {
    var mapper = Mapper(segment)
    return try mapper.run()
  }

  /// The records that are not in the map, among them copies of those that are.
  ///
  /// - Throws: `.io`.
  /// - Complexity: as `make(of:)`.
  func copies(in segment: SegmentReader) throws(StorageError) -> [Stretch] {
    var mapper = Mapper(segment)
    mapper.map = self
    for stretch in stretches {
      var offset = stretch.start
      while offset < stretch.end,
        case .record(let record) = try segment.record(at: offset, displacedBy: stretch.distance)
      {
        mapper.places[record.firstLSN] = offset &+ stretch.distance
        mapper.known.insert(offset)
        offset = record.endOffset
      }
    }
    try mapper.findMissing(amongCopies: true)
    return Array(mapper.map.stretches[stretches.count...])
  }

  /// Goes through a file once, from the beginning to the end.
  private struct Mapper {
    let segment: SegmentReader
    var map: SegmentMap
    var displacements: Displacements
    /// Where records were written that may have copies.
    var places: [LogSequenceNumber: UInt64] = [:]
    /// Where they stand in the file.
    var known: Set<UInt64> = []
    var offset = UInt64(SegmentHeader.byteCount)
    var distance: UInt64 = 0
    var last: RecordInfo?

    init(_ segment: SegmentReader) {
      self.segment = segment
      map = SegmentMap(segment.header)
      displacements = Displacements(segment.header, byteCount: segment.byteCount)
    }

    mutating func run() throws(StorageError) -> SegmentMap {
      while offset != segment.byteCount {
        var fault = RecordHeader.Fault.truncated
        if offset < segment.byteCount {
          switch try segment.record(at: offset, displacedBy: distance) {
          case .record(let record):
            take(record)
            continue
          case .invalid(let found): fault = found
          }
        }
        let bad = min(offset, segment.byteCount)
        // A payload of which bytes are missing reaches over the records behind it.
        let start = last.map { $0.offset + UInt64($0.headerByteCount) } ?? offset
        let next = try search(from: start)
        let end = next?.offset ?? max(map.contentEnd, bad)
        if end > bad {
          map.faults.append(
            Fault(start: bad, end: end, expected: fault.expected, found: fault.description))
        }
        guard let next else { break }
        (offset, distance) = (next.offset, next.distance)
        last = nil
      }
      if !map.faults.isEmpty
        || FoundWrites(map.stretches).hasGap(behind: segment.header.firstLSN.previous)
      {
        try findMissing(amongCopies: false)
      }
      map.stretches.sort { ($0.firstLSN, $0.start) < ($1.firstLSN, $1.start) }
      return map
    }

    /// Searches the whole file for records with writes that were not found: they may lie in the payload of another
    /// record. The first LSN of one that follows a record that was found, and the checksum that it repeats, say where it
    /// was written.
    ///
    /// - Parameter amongCopies: whether writes that were found are searched at other places, too.
    mutating func findMissing(amongCopies: Bool) throws(StorageError) {
      var found = FoundWrites(map.stretches)
      var place = UInt64(SegmentHeader.byteCount)
      while place < segment.byteCount {
        let (bytes, end) = try segment.searchWindow(at: place)
        if bytes.isEmpty { break }
        var start: UInt64?
        var rest = place + UInt64(end)
        var magics = ByteSearch(
          for: (RecordHeader.magic.0, RecordHeader.shortMagic), in: bytes, to: end)
        while start == nil, let next = magics.next() {
          let offset = place + UInt64(next)
          let candidate = UnsafeRawBufferPointer(rebasing: bytes[next...])
          let header = RecordHeader.decodeDisplaced(candidate, segment: segment.header)?.header
          guard let header, header.count > 0,
            amongCopies
              ? !known.contains(offset) : !found.contains(header.firstLSN)
          else { continue }
          var answer = distance(
            of: candidate, header, behind: found.ends[header.firstLSN.previous], at: offset)
          if case .needs(let byteCount) = answer {
            // The window is gone then.
            rest = offset + 1
            answer = displacements.distance(
              of: try segment.bytes(at: offset, count: byteCount), at: offset, isAll: true)
          }
          if case .found(let distance) = answer {
            start = offset
            self.distance = distance
          }
          if rest == offset + 1 { break }
        }
        guard let start else {
          place = rest
          continue
        }
        (offset, last) = (start, nil)
        while offset < segment.byteCount,
          case .record(let record) = try segment.record(at: offset, displacedBy: distance)
        {
          known.insert(offset)
          take(record)
        }
        if let stretch = map.stretches.last { found.add(stretch) }
        // The payload of the last record may reach over others.
        place = last.map { $0.offset + UInt64($0.headerByteCount) } ?? start + 1
      }
    }

    /// The distance of a record that follows one that was found, of a copy, or of another one.
    private mutating func distance(
      of candidate: UnsafeRawBufferPointer, _ header: RecordHeader, behind before: Stretch?,
      at offset: UInt64
    ) -> Displacements.Answer {
      let behind = before.flatMap {
        header.follows($0.checksum) ? $0.end &+ $0.distance : nil
      }
      for place in [behind, places[header.firstLSN]] {
        guard let place else { continue }
        if case .valid = RecordHeader.decode(candidate, offset: place, segment: segment.header) {
          return .found(place &- offset)
        }
      }
      return displacements.distance(of: candidate, at: offset)
    }

    private mutating func take(_ record: RecordInfo) {
      if let last, record.firstLSN == last.lastLSN.next, record.header.follows(last.checksum) {
        map.stretches[map.stretches.count - 1].end = record.endOffset
        map.stretches[map.stretches.count - 1].lastLSN = record.lastLSN
        map.stretches[map.stretches.count - 1].checksum = record.checksum
      } else {
        map.stretches.append(
          Stretch(
            start: record.offset, end: record.endOffset, distance: distance, first: record.header,
            lastLSN: record.lastLSN, checksum: record.checksum))
      }
      if record.kind != .seal, record.lastLSN >= map.end?.lastLSN ?? .zero {
        map.end = End(lastLSN: record.lastLSN, checksum: record.checksum, time: record.baseTime)
      }
      map.durableUpTo = max(map.durableUpTo, record.durableUpTo)
      map.contentEnd = max(map.contentEnd, min(record.endOffset, segment.byteCount))
      offset = record.endOffset
      last = record
      displacements.note(distance, next: record.endOffset &+ distance)
    }

    /// The next record from `start` on, at its place or displaced.
    private mutating func search(
      from start: UInt64
    ) throws(StorageError) -> (offset: UInt64, distance: UInt64)? {
      var place = start
      while place < segment.byteCount {
        var (bytes, end) = try segment.searchWindow(at: place)
        if bytes.isEmpty { break }
        if let last = lastNonZero(bytes, end) {
          map.contentEnd = max(map.contentEnd, place + UInt64(last) + 1)
        }
        var magics = ByteSearch(
          for: (RecordHeader.magic.0, RecordHeader.shortMagic), in: bytes, to: end)
        while let next = magics.next() {
          let offset = place + UInt64(next)
          var answer = displacements.distance(
            of: UnsafeRawBufferPointer(rebasing: bytes[next...]), at: offset)
          if case .needs(let byteCount) = answer {
            answer = displacements.distance(
              of: try segment.bytes(at: offset, count: byteCount), at: offset, isAll: true)
            if case .found = answer {
            } else {
              // The same bytes again, in another place in memory.
              (bytes, end) = try segment.searchWindow(at: place)
              magics = ByteSearch(
                for: (RecordHeader.magic.0, RecordHeader.shortMagic), in: bytes, from: next + 1,
                to: end)
            }
          }
          if case .found(let distance) = answer { return (offset, distance) }
        }
        place += UInt64(end)
      }
      return nil
    }
  }
}
