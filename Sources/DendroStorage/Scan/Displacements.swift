/// Finds out by how much a record was displaced: at which offset it was written.
///
/// A header is valid at its own offset only, since the seed of its checksum has it. If bytes were removed from a file or
/// inserted into it, which no crash does, every header behind them is invalid at its place. So a distance is tried, and
/// the checksum says whether it is right. First come those that are likely; all others are tried for bytes that are
/// certainly a record: their payload has its own checksum, or the header in front of them or behind them is linked with
/// theirs.
struct Displacements {
  /// Distances of the records that were found last.
  private static let knownCountMax = 16
  /// How many distances may be tried in one file in all: some hundredths of a second's work.
  private static let trialCountMax: UInt64 = 1 << 22
  /// Bytes within a record may look like another one, so that the record in front of one need not be the newest.
  private static let candidateCountMax = 8

  /// What may be a record at another place.
  private struct Candidate {
    var header: RecordHeader
    var checksum: UInt32
    var offset: UInt64
    var endOffset: UInt64
    /// All bytes of the header in front of its checksum.
    var fields: [UInt8]

    /// Nil if the bytes are no header at any place.
    init?(_ bytes: UnsafeRawBufferPointer, at offset: UInt64, of segment: SegmentHeader) {
      guard
        let (header, byteCount, checksum) = RecordHeader.decodeDisplaced(bytes, segment: segment)
      else { return nil }
      self.header = header
      self.checksum = checksum
      self.offset = offset
      endOffset = offset + UInt64(byteCount) + UInt64(header.storedByteCount)
      fields = Array(bytes[..<(byteCount - 4)])
    }

    var byteCount: Int { fields.count + 4 + header.storedByteCount }

    /// Whether the header is right at this distance.
    func isRight(_ distance: UInt64, _ salt: UInt64) -> Bool {
      fields.withUnsafeBytes { isRight($0, distance, salt) }
    }

    func isRight(_ fields: UnsafeRawBufferPointer, _ distance: UInt64, _ salt: UInt64) -> Bool {
      Checksum.short(fields, seed: salt &+ offset &+ distance) == checksum
    }

    func isBehind(_ other: Candidate) -> Bool {
      other.endOffset == offset && header.firstLSN == other.header.lastLSN.next
        && header.follows(other.checksum)
    }
  }

  /// Why bytes are certainly a record, wherever they were written.
  private enum Proof {
    case payload
    /// The one of which this one repeats the checksum, or that repeats its checksum.
    case link(Candidate)
  }

  private let segment: SegmentHeader
  private let distanceMax: UInt64
  private var known: [UInt64] = [0]
  /// The offset at which the next record was written, if none is lost.
  private var next: UInt64
  private var trialCount: UInt64 = 0
  /// Bytes that may still be read or hashed to see whether there is a record: bounds the work if the lengths are hostile.
  private var byteBudget: UInt64
  /// The last few, the newest first.
  private var candidates: [Candidate] = []

  /// - Parameters:
  ///   - byteCount: the number of bytes that are searched.
  ///   - next: the offset at which the first of the records was written, if none is lost.
  ///   - distanceMax: how far a record may be from where it was written, if that is not known of another one.
  init(_ segment: SegmentHeader, byteCount: UInt64, next: UInt64, distanceMax: UInt64) {
    self.segment = segment
    self.distanceMax = distanceMax
    self.next = next
    byteBudget = 4 * byteCount + 1 << 16
  }

  /// Notes a record that was found.
  ///
  /// - Parameter next: where the record behind it was written.
  mutating func note(_ distance: UInt64, next: UInt64) {
    self.next = next
    if known[0] == distance { return }
    known.removeAll { $0 == distance }
    known.insert(distance, at: 0)
    if known.count > Self.knownCountMax { known.removeLast() }
  }

  /// The distance of the record whose header is at the start of `bytes`; nil if there is none, or if it is not found.
  ///
  /// - Parameters:
  ///   - bytes: of `reader`, all of the header, and as much behind it as is at hand; no longer valid afterwards.
  ///   - offset: of `bytes` in the file.
  /// - Throws: `.io`.
  mutating func distance(
    of bytes: UnsafeRawBufferPointer, at offset: UInt64, in reader: SegmentReader
  ) throws(StorageError) -> UInt64? {
    guard let candidate = Candidate(bytes, at: offset, of: segment) else { return nil }
    return try distance(of: candidate, bytes, in: reader)?.distance
  }

  /// The last write that a displaced record proves durable; nil if there is none, or if it proves no later one than `lsn`.
  ///
  /// - Throws: `.io`.
  mutating func durableUpTo(
    _ bytes: UnsafeRawBufferPointer, at offset: UInt64, of reader: SegmentReader,
    after lsn: LogSequenceNumber
  ) throws(StorageError) -> LogSequenceNumber? {
    guard let candidate = Candidate(bytes, at: offset, of: segment) else { return nil }
    let durable = candidate.header.durableUpTo
    guard durable > lsn else {
      note(candidate)
      return nil
    }
    guard let (distance, proof) = try distance(of: candidate, bytes, in: reader) else {
      return nil
    }
    // No chance of one in thousands, as with bytes of another file, counts as a proof.
    if case .link(let other) = proof, !other.isRight(distance, segment.salt) { return nil }
    note(distance, next: candidate.endOffset &+ distance)
    return durable
  }

  private mutating func note(_ candidate: Candidate) {
    candidates.insert(candidate, at: 0)
    if candidates.count > Self.candidateCountMax { candidates.removeLast() }
  }

  /// - Returns: with the distance, why the bytes are a record; nil if the distance was known of another one.
  private mutating func distance(
    of candidate: Candidate, _ bytes: UnsafeRawBufferPointer, in reader: SegmentReader
  ) throws(StorageError) -> (distance: UInt64, proof: Proof?)? {
    defer { note(candidate) }
    for distance in known where candidate.isRight(distance, segment.salt) { return (distance, nil) }
    let expected = next &- candidate.offset
    if candidate.isRight(expected, segment.salt) { return (expected, nil) }
    guard trialCount < Self.trialCountMax else { return nil }
    var bytes = bytes
    let needed = candidate.byteCount + RecordHeader.byteCountMax
    if needed > bytes.count {
      guard UInt64(needed) <= byteBudget else { return nil }
      byteBudget -= UInt64(needed)
      bytes = try reader.bytes(at: candidate.offset, count: needed)
    }
    guard let proof = proof(of: candidate, bytes), let distance = tried(candidate) else {
      return nil
    }
    return (distance, proof)
  }

  private mutating func tried(_ candidate: Candidate) -> UInt64? {
    candidate.fields.withUnsafeBytes { fields in
      var distance: UInt64 = 1
      while distance <= distanceMax, trialCount < Self.trialCountMax {
        if candidate.isRight(fields, distance, segment.salt) { return distance }
        if candidate.isRight(fields, 0 &- distance, segment.salt) { return 0 &- distance }
        distance += 1
        trialCount += 2
      }
      return nil
    }
  }

  /// - Parameter bytes: of the record, and of the header behind it.
  private mutating func proof(
    of candidate: Candidate, _ bytes: UnsafeRawBufferPointer
  ) -> Proof? {
    let header = candidate.header
    let isWhole = candidate.byteCount <= bytes.count
    if isWhole {
      let behind = UnsafeRawBufferPointer(rebasing: bytes[candidate.byteCount...])
      // In front of a record at its place there is one whose header is damaged.
      if isInPlace(behind, at: candidate.endOffset) { return nil }
      if !header.isCompressed, header.sharedByteCount == 0,
        UInt64(header.storedByteCount) <= byteBudget
      {
        byteBudget -= UInt64(header.storedByteCount)
        let payload = UnsafeRawBufferPointer(
          rebasing: bytes[(candidate.fields.count + 4)..<candidate.byteCount])
        // Mostly bytes of another file, which has another salt.
        return header.hasPayload(Checksum.xxh3(payload, seed: segment.salt)) ? .payload : nil
      }
      if let next = Candidate(behind, at: candidate.endOffset, of: segment),
        next.isBehind(candidate)
      {
        return .link(next)
      }
    }
    return candidates.first { candidate.isBehind($0) }.map { .link($0) }
  }

  /// Whether there is a record that was displaced by a known distance, or not at all.
  private func isInPlace(_ bytes: UnsafeRawBufferPointer, at offset: UInt64) -> Bool {
    known.contains { distance in
      if case .valid = RecordHeader.decode(bytes, offset: offset &+ distance, segment: segment) {
        return true
      }
      return false
    }
  }
}
