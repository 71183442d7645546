import DendroEngine
import DendroStorage

extension Salvage {
  /// The writes that can be read, or that a good checkpoint contains.
  var saved: [ClosedRange<UInt64>] {
    var ranges = readable
    let newest = newestCheckpoint.rawValue
    if newest > 0 {
      ranges = [1...newest] + ranges.filter { $0.upperBound > newest }
    }
    var merged: [ClosedRange<UInt64>] = []
    for range in ranges {
      if let last = merged.last, last.upperBound + 1 >= range.lowerBound {
        merged[merged.count - 1] = last.lowerBound...max(last.upperBound, range.upperBound)
      } else {
        merged.append(range)
      }
    }
    return merged
  }
}
