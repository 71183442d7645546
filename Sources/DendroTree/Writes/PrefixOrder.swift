/// Puts the things of a write in the order of their keys: numbers are compared, of eight bytes of each key, in which
/// most differ, and whole keys only if these are equal.
struct PrefixOrder {
  struct Element {
    /// Eight bytes of the key, as a number that compares as they do: zeros stand for those behind its end.
    let prefix: UInt64
    /// Which thing it is.
    let index: Int32
  }

  /// Calls `body` with the elements in order.
  ///
  /// - Parameters:
  ///   - count: of the things.
  ///   - prefix: eight bytes of the key of a thing.
  ///   - compare: compares the whole keys of two things of equal prefixes: negative, zero or positive. Of equal keys the
  ///     one with the lower index comes first.
  ///   - body: gets the elements; nil if the things are in order as they are, and no two keys are equal.
  /// - Complexity: O(count) comparisons of numbers, and O(n log n) of keys for n equal prefixes.
  static func withSorted<R>(
    _ count: Int, prefix: (Int) -> UInt64, compare: (Int, Int) -> Int,
    _ body: (UnsafeMutableBufferPointer<Element>?) -> R
  ) -> R {
    withUnsafeTemporaryAllocation(of: Element.self, capacity: 2 * count) { room in
      let list = UnsafeMutableBufferPointer(rebasing: room[..<count])
      var isSorted = true
      for index in 0..<count {
        list[index] = Element(prefix: prefix(index), index: Int32(truncatingIfNeeded: index))
        if isSorted, index > 0 {
          let last = list[index &- 1].prefix
          isSorted =
            last < list[index].prefix
            || last == list[index].prefix && compare(index &- 1, index) < 0
        }
      }
      if isSorted { return body(nil) }
      if count > insertionCountMax {
        sortPrefixes(list, UnsafeMutableBufferPointer(rebasing: room[count...]))
        sortTies(list, compare)
      } else {
        insert(list, compare)
      }
      return body(list)
    }
  }

  /// So few are sorted by insertion.
  private static let insertionCountMax = 24

  @inline(__always)
  private static func precedes(
    _ a: Element, _ b: Element, _ compare: (Int, Int) -> Int
  ) -> Bool {
    if a.prefix != b.prefix { return a.prefix < b.prefix }
    let order = compare(Int(a.index), Int(b.index))
    return order != 0 ? order < 0 : a.index < b.index
  }

  private static func insert(
    _ list: UnsafeMutableBufferPointer<Element>, _ compare: (Int, Int) -> Int
  ) {
    var index = 1
    while index < list.count {
      let element = list[index]
      var place = index
      while place > 0, precedes(element, list[place &- 1], compare) {
        list[place] = list[place &- 1]
        place &-= 1
      }
      list[place] = element
      index &+= 1
    }
  }

  /// Sorts by the bytes of the prefixes, the last one first; equal ones stay as they are.
  private static func sortPrefixes(
    _ list: UnsafeMutableBufferPointer<Element>, _ room: UnsafeMutableBufferPointer<Element>
  ) {
    var different: UInt64 = 0
    for element in list { different |= element.prefix ^ list[0].prefix }
    var (from, to) = (list, room)
    withUnsafeTemporaryAllocation(of: Int.self, capacity: 256) { ends in
      for shift in stride(from: UInt64(0), to: 64, by: 8) where different &>> shift & 0xFF != 0 {
        ends.update(repeating: 0)
        for element in from { ends[Int(element.prefix &>> shift & 0xFF)] &+= 1 }
        var end = 0
        for byte in 0..<256 { (ends[byte], end) = (end, end &+ ends[byte]) }
        for element in from {
          let byte = Int(element.prefix &>> shift & 0xFF)
          to[ends[byte]] = element
          ends[byte] &+= 1
        }
        swap(&from, &to)
      }
    }
    if from.baseAddress != list.baseAddress { _ = list.update(fromContentsOf: from) }
  }

  /// Sorts those of equal prefixes.
  private static func sortTies(
    _ list: UnsafeMutableBufferPointer<Element>, _ compare: (Int, Int) -> Int
  ) {
    var start = 0
    while start < list.count {
      var end = start &+ 1
      while end < list.count, list[end].prefix == list[start].prefix { end &+= 1 }
      var ties = UnsafeMutableBufferPointer(rebasing: list[start..<end])
      if ties.count > insertionCountMax {
        ties.sort { precedes($0, $1, compare) }
      } else {
        insert(ties, compare)
      }
      start = end
    }
  }
}
