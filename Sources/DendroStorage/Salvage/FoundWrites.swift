/// Which writes of a segment have records that were found.
struct FoundWrites {
  /// Ascending and apart.
  private var ranges: [ClosedRange<UInt64>] = []
  /// The stretches by their last writes.
  private(set) var ends: [LogSequenceNumber: SegmentMap.Stretch] = [:]

  init(_ stretches: [SegmentMap.Stretch]) {
    for stretch in stretches.sorted(by: { $0.firstLSN < $1.firstLSN }) { add(stretch) }
  }

  /// - Complexity: O(1) behind all others, else O(ranges).
  mutating func add(_ stretch: SegmentMap.Stretch) {
    ends[stretch.lastLSN] = stretch
    let (first, last) = (stretch.firstLSN.rawValue, stretch.lastLSN.rawValue)
    guard first <= last else { return }
    var low = index(behind: first)
    var high = low
    var merged = first...last
    if low > 0, ranges[low - 1].upperBound >= first - 1 {
      low -= 1
      merged = ranges[low].lowerBound...max(last, ranges[low].upperBound)
    }
    while high < ranges.count, ranges[high].lowerBound <= merged.upperBound + 1 {
      merged = merged.lowerBound...max(merged.upperBound, ranges[high].upperBound)
      high += 1
    }
    ranges.replaceSubrange(low..<high, with: [merged])
  }

  /// - Complexity: O(log(ranges)).
  func contains(_ lsn: LogSequenceNumber) -> Bool {
    let index = index(behind: lsn.rawValue)
    return index > 0 && ranges[index - 1].contains(lsn.rawValue)
  }

  /// Whether writes are missing between one and the last that was found.
  func hasGap(behind lsn: LogSequenceNumber) -> Bool {
    ranges.count > 1 || ranges.first.map { $0.lowerBound > lsn.next.rawValue } ?? false
  }

  /// The number of ranges that begin at a write or before it.
  private func index(behind lsn: UInt64) -> Int {
    var (low, high) = (0, ranges.count)
    while low < high {
      let middle = low + (high - low) / 2
      if ranges[middle].lowerBound <= lsn { low = middle + 1 } else { high = middle }
    }
    return low
  }
}
