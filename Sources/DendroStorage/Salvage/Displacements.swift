/// Finds out by how much a record was displaced: at which offset it was written.
///
/// The seed of a header's checksum has the offset at which it was written. So a distance is tried, and the checksum
/// says whether it is right. First come those that are likely; all others are tried for bytes that are certainly a record:
/// the record behind them repeats their checksum and has the next write, or their payload has its own checksum.
struct Displacements {
  /// Distances of the records that were found last.
  private static let knownCountMax = 16
  /// How many distances may be tried in one file in all: some hundredths of a second's work.
  private static let trialCountMax: UInt64 = 1 << 22

  private let segment: SegmentHeader
  private let byteCount: UInt64
  private var known: [UInt64] = [0]
  /// The offset at which the next record was written, if none is lost.
  private var next = UInt64(SegmentHeader.byteCount)
  private var trialCount: UInt64 = 0
  /// Bytes that may still be read or hashed to see whether there is a record: bounds the work if the lengths are hostile.
  private var byteBudget: UInt64

  init(_ segment: SegmentHeader, byteCount: UInt64) {
    self.segment = segment
    self.byteCount = byteCount
    byteBudget = 4 * byteCount
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

  enum Answer {
    case none
    case found(UInt64)
    /// So many bytes have to be seen.
    case needs(Int)
  }

  /// The distance of the record whose header is at the start of `bytes`.
  ///
  /// - Parameters:
  ///   - bytes: all of the header, and as much behind it as is at hand.
  ///   - offset: of `bytes` in the file.
  ///   - isAll: whether `bytes` are as many as were needed, or reach to the end of the file.
  mutating func distance(
    of bytes: UnsafeRawBufferPointer, at offset: UInt64, isAll: Bool = false
  ) -> Answer {
    guard let (header, byteCount, checksum) = RecordHeader.decodeDisplaced(bytes, segment: segment)
    else { return .none }
    let fields = UnsafeRawBufferPointer(rebasing: bytes[..<(byteCount - 4)])
    let seed = segment.salt &+ offset
    for distance in known + [next &- offset]
    where Checksum.short(fields, seed: seed &+ distance) == checksum { return .found(distance) }
    guard trialCount < Self.trialCountMax else { return .none }
    let needed = byteCount + header.storedByteCount + RecordHeader.byteCountMax
    if needed > bytes.count, !isAll {
      guard UInt64(needed) <= byteBudget else { return .none }
      byteBudget -= UInt64(needed)
      return .needs(needed)
    }
    let rest = UnsafeRawBufferPointer(rebasing: bytes[byteCount...])
    guard header.storedByteCount <= rest.count else { return .none }
    let behind = UnsafeRawBufferPointer(rebasing: rest[header.storedByteCount...])
    // In front of a record at its place there is one whose header is damaged.
    if isInPlace(behind, at: offset + UInt64(byteCount + header.storedByteCount)) { return .none }
    guard isRecord(header, checksum, rest, behind) else { return .none }
    // As far as the file is long, and more: it may have lost bytes.
    let limit = min(max(self.byteCount, 1 << 20), 16 * self.byteCount + 1 << 16)
    var distance: UInt64 = 1
    while distance <= limit, trialCount < Self.trialCountMax {
      if Checksum.short(fields, seed: seed &+ distance) == checksum { return .found(distance) }
      if Checksum.short(fields, seed: seed &- distance) == checksum {
        return .found(0 &- distance)
      }
      distance += 1
      trialCount += 2
    }
    return .none
  }

  /// Whether the bytes are certainly a record of this segment, wherever they were written.
  private mutating func isRecord(
    _ header: RecordHeader, _ checksum: UInt32, _ rest: UnsafeRawBufferPointer,
    _ behind: UnsafeRawBufferPointer
  ) -> Bool {
    if !header.isCompressed, header.sharedByteCount == 0,
      UInt64(header.storedByteCount) <= byteBudget
    {
      byteBudget -= UInt64(header.storedByteCount)
      let payload = UnsafeRawBufferPointer(rebasing: rest[..<header.storedByteCount])
      return header.hasPayload(Checksum.xxh3(payload, seed: segment.salt))
    }
    guard let (next, _, _) = RecordHeader.decodeDisplaced(behind, segment: segment) else {
      return false
    }
    return next.firstLSN == header.lastLSN.next && next.follows(checksum)
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
