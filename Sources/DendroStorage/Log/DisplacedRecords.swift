/// Recognizes records of a segment that are at another offset than they were written at. Used by
/// `SegmentReader.search`.
///
/// A header is valid at its own offset only. If bytes were removed from a file or inserted into it, which
/// no crash does, every header behind them is invalid. Such a displaced record still proves how far the log
/// was durable. It is recognized by two checksums: that of its header, which must be right for an offset
/// nearby, and one of these:
/// - the payload checksum of an idle record, a seal, or a payload that is stored raw;
/// - or, for the same distance, the header checksum of the record right before it, which it repeats.
struct DisplacedRecords {
  /// How far a record may be from the offset at which it was written.
  static let distanceMax: UInt64 = 1 << 20
  /// Candidates for which all distances are tried: bounds the work on bytes that only look like records.
  private static let searchCountMax = 2

  private enum Payload {
    case right
    case wrong
    /// Not hashed: it is not stored raw, ends behind the given bytes, or is over the budget.
    case unknown
  }

  private struct Candidate {
    var bytes: [UInt8]
    var offset: UInt64
    var endOffset: UInt64
    var checksum: UInt32
  }

  private let segment: SegmentHeader
  private let lsn: LogSequenceNumber
  private let emptyChecksum: UInt64
  /// Bytes of payloads that may still be hashed: bounds the work if the lengths are hostile.
  private var budget: UInt64
  private var searchCount = 0
  /// Added to a record's offset, modulo 2^64, it gives the offset at which the record was written.
  private var distance: UInt64?
  /// The last few, the newest first: bytes within a record may look like another one, so that the record right
  /// before the next need not be the newest.
  private var candidates: [Candidate] = []
  private static let candidateCountMax = 8

  /// - Parameters:
  ///   - lsn: the last write that was read: no distance is tried for a record that proves no later write durable.
  ///   - byteCount: the number of bytes that are searched.
  init(segment: SegmentHeader, after lsn: LogSequenceNumber, byteCount: UInt64) {
    self.segment = segment
    self.lsn = lsn
    budget = byteCount
    emptyChecksum = Checksum.xxh3(
      UnsafeRawBufferPointer(start: nil, count: 0), seed: segment.salt)
  }

  /// The last write that the record at `offset` proves durable; nil if it proves no later one than was
  /// read, or is not certain to be a record.
  ///
  /// - Parameter bytes: from its magic on; not a valid header at this offset.
  mutating func durableUpTo(_ bytes: UnsafeRawBufferPointer, at offset: UInt64)
    -> LogSequenceNumber?
  {
    guard let (header, byteCount, checksum) = RecordHeader.decodeDisplaced(bytes, segment: segment)
    else { return nil }
    let payload = payload(of: header, UnsafeRawBufferPointer(rebasing: bytes[byteCount...]))
    // Mostly bytes of another file, which has another salt: no distance is tried for them.
    if payload == .wrong { return nil }
    let candidate = Candidate(
      bytes: Array(bytes[..<byteCount]), offset: offset,
      endOffset: offset + UInt64(byteCount) + UInt64(header.storedByteCount), checksum: checksum)
    let previous = candidates.first { $0.endOffset == offset && header.follows($0.checksum) }
    candidates.insert(candidate, at: 0)
    if candidates.count > Self.candidateCountMax { candidates.removeLast() }
    guard header.durableUpTo > lsn else { return nil }
    guard previous != nil || payload == .right, let distance = distance(of: candidate)
    else { return nil }
    if let previous, payload != .right, !isRight(previous, distance) { return nil }
    self.distance = distance
    return header.durableUpTo
  }

  private mutating func distance(of candidate: Candidate) -> UInt64? {
    candidate.bytes.withUnsafeBytes { bytes in
      let seed = segment.salt &+ candidate.offset
      let header = UnsafeRawBufferPointer(rebasing: bytes.dropLast(4))
      if let distance, Checksum.short(header, seed: seed &+ distance) == candidate.checksum {
        return distance
      }
      guard searchCount < Self.searchCountMax else { return nil }
      searchCount += 1
      var distance: UInt64 = 1
      while distance <= Self.distanceMax {
        if Checksum.short(header, seed: seed &+ distance) == candidate.checksum { return distance }
        if Checksum.short(header, seed: seed &- distance) == candidate.checksum {
          return 0 &- distance
        }
        distance += 1
      }
      return nil
    }
  }

  private func isRight(_ candidate: Candidate, _ distance: UInt64) -> Bool {
    candidate.bytes.withUnsafeBytes { bytes in
      Checksum.short(
        UnsafeRawBufferPointer(rebasing: bytes.dropLast(4)),
        seed: segment.salt &+ candidate.offset &+ distance)
    } == candidate.checksum
  }

  private mutating func payload(of header: RecordHeader, _ bytes: UnsafeRawBufferPointer) -> Payload
  {
    if header.storedByteCount == 0 {
      return header.hasPayload(emptyChecksum) ? .right : .wrong
    }
    guard !header.isCompressed, header.sharedByteCount == 0,
      header.storedByteCount <= bytes.count,
      UInt64(header.storedByteCount) <= budget
    else { return .unknown }
    budget -= UInt64(header.storedByteCount)
    let payload = UnsafeRawBufferPointer(rebasing: bytes[..<header.storedByteCount])
    return header.hasPayload(Checksum.xxh3(payload, seed: segment.salt)) ? .right : .wrong
  }
}
