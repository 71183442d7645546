/// The bytes of a file that is being damaged, and where each of them stood before.
package struct DamagedFile {
  /// The name under which its bytes were written.
  package let origin: String
  package private(set) var bytes: [UInt8]
  /// For each byte its offset as it was written; -1 for one that was changed or inserted.
  private var origins: [Int32]
  /// Whether anything was done to it.
  package private(set) var isChanged = false

  package init(_ origin: String, _ bytes: [UInt8]) {
    self.origin = origin
    self.bytes = bytes
    origins = Array(0..<Int32(bytes.count))
  }

  package mutating func change(_ range: Range<Int>, _ body: (UInt8) -> UInt8) {
    for index in range {
      let new = body(bytes[index])
      guard new != bytes[index] else { continue }
      bytes[index] = new
      origins[index] = -1
      isChanged = true
    }
  }

  package mutating func remove(_ range: Range<Int>) {
    bytes.removeSubrange(range)
    origins.removeSubrange(range)
    isChanged = isChanged || !range.isEmpty
  }

  package mutating func insert(_ new: [UInt8], at offset: Int) {
    bytes.insert(contentsOf: new, at: offset)
    origins.insert(contentsOf: repeatElement(-1, count: new.count), at: offset)
    isChanged = isChanged || !new.isEmpty
  }

  /// Exchanges two ranges that do not overlap, the first one before the second.
  package mutating func exchange(_ first: Range<Int>, _ second: Range<Int>) {
    func exchanged<Element>(_ all: [Element]) -> [Element] {
      [
        all[..<first.lowerBound], all[second], all[first.upperBound..<second.lowerBound],
        all[first], all[second.upperBound...],
      ].flatMap { $0 }
    }
    let old = bytes
    bytes = exchanged(bytes)
    origins = exchanged(origins)
    isChanged = isChanged || bytes != old
  }

  /// Writes a copy of a range over what stands at an offset.
  package mutating func copy(_ range: Range<Int>, to offset: Int) {
    let old = bytes
    let (copied, places) = (Array(bytes[range]), Array(origins[range]))
    let end = min(offset + copied.count, bytes.count)
    bytes.replaceSubrange(offset..<end, with: copied.prefix(end - offset))
    origins.replaceSubrange(offset..<end, with: places.prefix(end - offset))
    isChanged = isChanged || bytes != old
  }

  /// Whether the bytes of a range survive in one piece, wherever they stand.
  package func survives(_ range: Range<Int>) -> Bool {
    if range.isEmpty { return true }
    if !isChanged { return range.upperBound <= bytes.count }
    var start = origins.firstIndex(of: Int32(range.lowerBound))
    while let first = start {
      let isWhole =
        first + range.count <= origins.count
        && zip(range, origins[first...]).allSatisfy { Int32($0) == $1 }
      if isWhole { return true }
      start = origins[(first + 1)...].firstIndex(of: Int32(range.lowerBound))
    }
    return false
  }

  /// Whether the bytes of a range are as they were, where they were.
  package func isInPlace(_ range: Range<Int>) -> Bool {
    if !isChanged { return range.upperBound <= origins.count }
    return range.upperBound <= origins.count
      && zip(range, origins[range]).allSatisfy { Int32($0) == $1 }
  }

  /// The first byte that is not what it was, where it was; nil if all are.
  package var firstChange: Int? {
    zip(origins.indices, origins).first { Int32($0) != $1 }?.0 ?? (isChanged ? origins.count : nil)
  }
}
