extension LogSalvage.Walk {
  /// What is still to be read of a segment: stretches, in the order of their writes.
  struct Rest {
    /// The part of a stretch that is not read yet.
    struct Part {
      let stretch: SegmentMap.Stretch
      let scan: SegmentScan
      /// The write that could not be read here.
      fileprivate var failed: LogSequenceNumber?

      fileprivate init(_ stretch: SegmentMap.Stretch, of segment: SegmentReader) {
        self.stretch = stretch
        scan = SegmentScan(segment, at: stretch.start, displacedBy: stretch.distance)
      }

      var isBegun: Bool { scan.offset > stretch.start || failed != nil }

      fileprivate func mayHave(_ lsn: LogSequenceNumber) -> Bool {
        stretch.firstLSN <= lsn && lsn <= stretch.lastLSN && failed != lsn
      }
    }

    private let segment: SegmentReader
    private let map: SegmentMap
    private var parts: [Part]
    private var hasCopies = false
    /// How many stretches may still be looked at, in all: bounds the work if a hostile file has very many of both.
    private var lookBudget = 1 << 24

    init(_ map: SegmentMap, of segment: SegmentReader) {
      self.map = map
      self.segment = segment
      parts = map.stretches.reversed().map { Part($0, of: segment) }
    }

    mutating func next() -> Part? { parts.popLast() }

    /// Lets a stretch that may have the same write come first, if there is one.
    ///
    /// The first record that cannot be read is the reason to search the segment for all that the map passed over: copies
    /// of the record, and others in the bytes that it claims.
    ///
    /// - Returns: false, and `part` is not kept, if there is no such stretch.
    /// - Throws: `.io`.
    mutating func putOff(
      _ part: Part, until lsn: LogSequenceNumber
    ) throws(StorageError) -> Bool {
      if !hasCopies {
        hasCopies = true
        let copies = try SegmentMapper.copies(of: map, in: segment)
        parts += copies.map { Part($0, of: segment) }
        parts.sort {
          ($0.stretch.firstLSN, $0.stretch.start) > ($1.stretch.firstLSN, $1.stretch.start)
        }
      }
      guard lookBudget > 0 else { return false }
      lookBudget -= parts.count + 1
      guard let index = parts.lastIndex(where: { $0.mayHave(lsn) }) else { return false }
      var part = part
      part.failed = lsn
      let other = parts.remove(at: index)
      parts += [part, other]
      return true
    }
  }
}
