/// Makes the map of a segment: goes through its file from the beginning to the end, and then looks for what it passed over.
struct SegmentMapper {
  private let segment: SegmentReader
  private var map: SegmentMap
  private let scan: SegmentScan
  private var displacements: Displacements
  /// Where records were written that may have copies.
  private var places: [LogSequenceNumber: UInt64] = [:]
  /// Where they stand in the file.
  private var known: Set<UInt64> = []
  /// Where what may be records stands whose distance is not known yet, by their first writes.
  private var unplaced: [LogSequenceNumber: [UInt64]] = [:]
  private var unplacedCount = 0
  /// Bytes may look like very many records.
  private static let unplacedCountMax = 1 << 16
  /// As many of them may begin with the same write.
  private static let rivalCountMax = 8

  private init(_ segment: SegmentReader) {
    self.segment = segment
    map = SegmentMap(segment.header)
    scan = SegmentScan(segment)
    let byteCount = segment.byteCount
    // As far as the file is long, and more: it may have lost bytes.
    displacements = Displacements(
      segment.header, byteCount: byteCount, next: scan.offset,
      distanceMax: min(max(byteCount, 1 << 20), 16 * byteCount + 1 << 16))
  }

  /// - Throws: `.io`.
  /// - Complexity: O(bytes of the segment), and a bounded number of distances tried for displaced records.
  static func map(of segment: SegmentReader) throws(StorageError) -> SegmentMap {
    var mapper = SegmentMapper(segment)
    try mapper.run()
    return mapper.map
  }

  /// The records that are not in a map, among them copies of those that are.
  ///
  /// - Throws: `.io`.
  /// - Complexity: as `map(of:)`.
  static func copies(
    of map: SegmentMap, in segment: SegmentReader
  ) throws(StorageError) -> [SegmentMap.Stretch] {
    var mapper = SegmentMapper(segment)
    mapper.map = map
    for stretch in map.stretches {
      try stretch.forEachRecord(of: segment) { record in
        mapper.places[record.firstLSN] = record.offset &+ stretch.distance
        mapper.known.insert(record.offset)
      }
    }
    try mapper.findMissing(amongCopies: true)
    return Array(mapper.map.stretches[map.stretches.count...])
  }

  // MARK: From the beginning to the end

  private mutating func run() throws(StorageError) {
    while scan.offset != segment.byteCount {
      var fault = RecordHeader.Fault.truncated
      switch try scan.header() {
      case .record(let record):
        take(record)
        continue
      case .invalid(let found): fault = found
      case nil: break
      }
      let bad = min(scan.offset, segment.byteCount)
      // A payload of which bytes are missing reaches over the records behind it.
      let next = try search(from: scan.isLinked ? scan.last?.payloadOffset ?? bad : bad)
      let end = next?.offset ?? max(map.contentEnd, bad)
      if end > bad {
        map.faults.append(
          SegmentMap.Fault(
            start: bad, end: end, expected: fault.expected, found: fault.description))
      }
      guard let next else { break }
      scan.goOn(at: next.offset, displacedBy: next.distance)
    }
    if !map.faults.isEmpty
      || FoundWrites(map.stretches).hasGap(behind: segment.header.firstLSN.previous)
    {
      try findMissing(amongCopies: false)
    }
    map.stretches.sort { ($0.firstLSN, $0.start) < ($1.firstLSN, $1.start) }
  }

  /// The next record from `start` on, at its place or displaced.
  private mutating func search(
    from start: UInt64
  ) throws(StorageError) -> (offset: UInt64, distance: UInt64)? {
    var found: (offset: UInt64, distance: UInt64)?
    let end = try segment.lookForRecords(from: start) { (bytes, place) throws(StorageError) in
      guard let distance = try displacements.distance(of: bytes, at: place, in: segment) else {
        return .next
      }
      found = (place, distance)
      return .stop
    }
    if end > start { map.contentEnd = max(map.contentEnd, end) }
    return found
  }

  private mutating func take(_ record: RecordInfo) {
    if scan.isLinked, scan.last != nil, scan.linkFault(record) == nil {
      map.stretches[map.stretches.count - 1].end = record.endOffset
      map.stretches[map.stretches.count - 1].lastLSN = record.lastLSN
      map.stretches[map.stretches.count - 1].checksum = record.checksum
    } else {
      map.stretches.append(
        SegmentMap.Stretch(
          start: record.offset, end: record.endOffset, distance: scan.distance,
          first: record.header, lastLSN: record.lastLSN, checksum: record.checksum))
    }
    if record.kind != .seal, record.lastLSN >= map.end?.lastLSN ?? .zero {
      let before = map.end?.lastLSN == record.lastLSN ? map.end?.writeChecksum : nil
      map.end = SegmentMap.End(
        lastLSN: record.lastLSN, checksum: record.checksum,
        writeChecksum: record.kind == .writes ? record.checksum : before, time: record.baseTime)
    }
    map.durableUpTo = max(map.durableUpTo, record.durableUpTo)
    map.contentEnd = max(map.contentEnd, min(record.endOffset, segment.byteCount))
    scan.take(record)
    displacements.note(scan.distance, next: record.endOffset &+ scan.distance)
  }

  // MARK: What was passed over

  /// Searches the whole file for records with writes that were not found: they may lie in the payload of another
  /// record, or where the header was. The first LSN of one that follows a record that was found, and the checksum that it
  /// repeats, say where it was written.
  ///
  /// - Parameter amongCopies: whether writes that were found are searched at other places, too.
  private mutating func findMissing(amongCopies: Bool) throws(StorageError) {
    var found = FoundWrites(map.stretches)
    try segment.lookForRecords(from: 0) {
      (bytes, place) throws(StorageError) in
      let header = RecordHeader.decodeDisplaced(bytes, segment: segment.header)?.header
      guard let header, header.count > 0,
        amongCopies ? !known.contains(place) : !found.contains(header.firstLSN)
      else { return .next }
      let before = found.ends[header.firstLSN.previous]
      guard let distance = try distance(of: bytes, header, behind: before, at: place) else {
        note(unplaced: header.firstLSN, at: place)
        return .next
      }
      let count = map.stretches.count
      try takeStretches(at: place, displacedBy: distance, into: &found)
      // The payload of the last record may reach over others.
      let next = max(scan.last?.payloadOffset ?? 0, place + 1)
      try placeFollowing(from: count, into: &found)
      return .jump(to: next)
    }
  }

  private mutating func note(unplaced lsn: LogSequenceNumber, at place: UInt64) {
    guard unplacedCount < Self.unplacedCountMax,
      unplaced[lsn]?.count ?? 0 < Self.rivalCountMax
    else { return }
    unplaced[lsn, default: []].append(place)
    unplacedCount += 1
  }

  /// Takes the records that stand here one behind the other, up to one that was taken already.
  private mutating func takeStretches(
    at place: UInt64, displacedBy distance: UInt64, into found: inout FoundWrites
  ) throws(StorageError) {
    let count = map.stretches.count
    scan.goOn(at: place, displacedBy: distance)
    while let record = try scan.header()?.record, known.insert(record.offset).inserted {
      take(record)
    }
    for stretch in map.stretches[count...] { found.add(stretch) }
  }

  /// Takes what was passed over before it was known that it follows one of the stretches that were found last, as of records
  /// that have changed places.
  ///
  /// - Parameter first: the index of the first of these stretches.
  private mutating func placeFollowing(
    from first: Int, into found: inout FoundWrites
  ) throws(StorageError) {
    var index = first
    while index < map.stretches.count {
      let stretch = map.stretches[index]
      index += 1
      for place in unplaced[stretch.lastLSN.next] ?? [] where !known.contains(place) {
        let bytes = try segment.bytes(at: place, count: RecordHeader.byteCountMax)
        guard let header = RecordHeader.decodeDisplaced(bytes, segment: segment.header)?.header,
          let distance = knownDistance(of: bytes, header, behind: stretch, at: place)
        else { continue }
        unplaced[header.firstLSN] = nil
        try takeStretches(at: place, displacedBy: distance, into: &found)
        break
      }
    }
  }

  /// The distance of a record that follows one that was found, of a copy, or of another one.
  private mutating func distance(
    of bytes: UnsafeRawBufferPointer, _ header: RecordHeader, behind before: SegmentMap.Stretch?,
    at offset: UInt64
  ) throws(StorageError) -> UInt64? {
    if let known = knownDistance(of: bytes, header, behind: before, at: offset) { return known }
    return try displacements.distance(of: bytes, at: offset, in: segment)
  }

  /// The distance of the first record of the segment, of one that follows one that was found, or of a copy.
  private func knownDistance(
    of bytes: UnsafeRawBufferPointer, _ header: RecordHeader, behind before: SegmentMap.Stretch?,
    at offset: UInt64
  ) -> UInt64? {
    let behind = before.flatMap {
      header.follows($0.checksum) ? $0.end &+ $0.distance : nil
    }
    let isFirst = header.firstLSN == segment.header.firstLSN
    let first = isFirst ? UInt64(SegmentHeader.byteCount) : nil
    for place in [first, behind, places[header.firstLSN]] {
      guard let place else { continue }
      if case .valid = RecordHeader.decode(bytes, offset: place, segment: segment.header) {
        return place &- offset
      }
    }
    return nil
  }
}
