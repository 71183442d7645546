/// Finds the header of a segment whose first 64 bytes are damaged, from its checksum and its records.
///
/// A single bit that changed is found by the header's checksum. Otherwise the salt, without which no record can be
/// checked, is computed from the checksum of an idle record, a seal or a small payload (`ChecksumSeed`), and counts
/// if the header of that record is right with it.
enum LostHeader {
  /// What is known of a segment beside its file.
  struct Surroundings {
    var firstLSN: LogSequenceNumber
    var databaseID: DatabaseID
    var previousChecksum: UInt32
    /// The time of the last write before the segment, in milliseconds since 1970; nil if it is not known.
    var timeBefore: Int64?
    /// The base time of the next segment; nil if there is none.
    var timeBehind: Int64?
    var hasSecondRoot: Bool
  }

  /// The header, and how far it is known.
  struct Found {
    var header: SegmentHeader
    /// The last of its records; nil if there is none.
    var end: SegmentMap.End?
    /// Whether its base time, from which the times of its writes count, is a guess.
    var isTimeGuessed: Bool
    /// Whether its first write is sure, too.
    var isPlaceKnown: Bool

    fileprivate init(_ header: SegmentHeader, _ end: SegmentMap.End?, isExact: Bool) {
      self.header = header
      self.end = end
      isTimeGuessed = !isExact
      isPlaceKnown = isExact
    }
  }

  /// The header as the records show it; nil if none of them shows the salt.
  ///
  /// - Complexity: O(bytes of the file), and a bounded number of distances tried.
  static func found(
    in directory: DatabaseDirectory, at path: String, _ surroundings: Surroundings
  ) throws(StorageError) -> Found? {
    var header = SegmentHeader(
      databaseID: surroundings.databaseID, salt: 0, firstLSN: surroundings.firstLSN,
      baseTime: 0, previousChecksum: surroundings.previousChecksum,
      format: .init(hasSecondRoot: surroundings.hasSecondRoot))
    let segment = try SegmentReader(header, at: path, in: directory)
    var shown = try salt(of: segment)
    if shown == nil { shown = try salt(of: segment, distanceMax: distanceMax) }
    guard let salt = shown else { return nil }
    header.salt = salt
    let salted = try SegmentReader(header, at: path, in: directory)
    // With a base time of 0, the time of a record is what is added to it.
    let end = try SegmentMapper.map(of: salted).end
    let duration = end?.time ?? 0
    let latest = surroundings.timeBehind.map { $0 &- duration }
    let earliest = surroundings.timeBefore
    header.baseTime = earliest ?? latest ?? 0
    // The first record repeats the header's checksum.
    let first = try salted.record(at: UInt64(SegmentHeader.byteCount)).record
    guard let first, !first.header.isShort else {
      return Found(header, end, isExact: false)
    }
    let checksum = first.header.previousChecksum
    // Where it is not known whether there is a second root, it is a guess.
    for hasSecondRoot in [surroundings.hasSecondRoot, !surroundings.hasSecondRoot] {
      var exact = SegmentHeader(
        databaseID: header.databaseID, salt: salt, firstLSN: header.firstLSN, baseTime: 0,
        previousChecksum: header.previousChecksum, format: .init(hasSecondRoot: hasSecondRoot))
      for times in baseTimes(from: earliest, to: latest) {
        guard let time = exact.baseTime(with: checksum, in: times) else { continue }
        exact.baseTime = time
        exact.checksum = checksum
        return Found(exact, end, isExact: true)
      }
    }
    header.checksum = checksum
    return Found(header, end, isExact: false)
  }

  /// How many base times are tried at each end of what is possible: those of a minute.
  private static let trialCountMax: Int64 = 1 << 16

  /// The base times to be tried: a segment is mostly begun at the time of the last write before it.
  private static func baseTimes(
    from earliest: Int64?, to latest: Int64?
  ) -> [ClosedRange<Int64>] {
    let first = earliest ?? (latest ?? 0) &- trialCountMax
    let last = max(first, latest ?? first &+ trialCountMax)
    let middle = max(first, last &- trialCountMax)
    let up = first...min(last, first &+ trialCountMax)
    return [up, max(middle, up.upperBound)...last]
  }

  /// By how many bytes a record may be displaced whose header alone has to show that a salt is right.
  private static let distanceMax: UInt64 = 4096
  /// How many distances may be tried in all: some tenths of a second's work. So few that a wrong salt, which a header's
  /// checksum lets pass once in four billion times, is found in none of a thousand files.
  private static let distanceTrialCountMax = 1 << 22

  /// The salt that a record shows whose header is right with it, or that two records show.
  ///
  /// - Parameter distanceMax: how far from its place the header of the record may be right: what was cut off the beginning,
  ///   or put there, has displaced all records.
  private static func salt(
    of segment: SegmentReader, distanceMax: UInt64 = 0
  ) throws(StorageError) -> UInt64? {
    var shown: Set<UInt64> = []
    var found: UInt64?
    var trialCount = 0
    try segment.lookForRecords(from: 0) { (bytes, place) throws(StorageError) in
      guard
        let (record, byteCount, _) = RecordHeader.decodeDisplaced(bytes, segment: segment.header),
        !record.isShort, !record.isCompressed,
        record.storedByteCount <= min(ChecksumSeed.byteCountMax, bytes.count - byteCount)
      else { return .next }
      let payload = UnsafeRawBufferPointer(
        rebasing: bytes[byteCount..<byteCount + record.storedByteCount])
      guard let salt = ChecksumSeed.seed(of: payload, with: record.payloadChecksum) else {
        return .next
      }
      var header = segment.header
      header.salt = salt
      func isRight(_ distance: UInt64) -> Bool {
        trialCount += 1
        if case .valid = RecordHeader.decode(bytes, offset: place &+ distance, segment: header) {
          return true
        }
        return false
      }
      if isRight(0)
        || trialCount < distanceTrialCountMax
          && (0..<distanceMax).contains(where: { isRight($0 + 1) || isRight(0 &- $0 &- 1) })
      {
        found = salt
      } else if shown.count < 1 << 16, !shown.insert(salt).inserted {
        found = salt
      }
      return found == nil ? .next : .stop
    }
    return found
  }
}

extension FileFormat {
  fileprivate init(hasSecondRoot: Bool) {
    self.init()
    self.hasSecondRoot = hasSecondRoot
  }
}
