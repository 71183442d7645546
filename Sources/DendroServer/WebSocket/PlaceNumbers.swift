import DendroTree

/// Numbers of locations: each has that of the nearest place at or above it.
struct PlaceNumbers: Sendable {
  /// Of this place; nil for that of the place above.
  private var number: Int?
  private var below: [Key: PlaceNumbers] = [:]

  var isEmpty: Bool { number == nil && below.isEmpty }

  /// The number of a location; nil if no place is at or above it.
  ///
  /// - Complexity: O(length of the path).
  subscript(path: Path) -> Int? {
    var found = number
    var place = self
    for key in path.keys {
      guard let next = place.below[key] else { break }
      place = next
      found = next.number ?? found
    }
    return found
  }

  /// Gives a location and all below it a number.
  ///
  /// - Parameter ground: of what has no place at or above it.
  /// - Complexity: O(length of the path), and to free what was below it.
  mutating func set(_ path: Path, to number: Int, ground: Int) {
    var keys = path.keys.makeIterator()
    set(&keys, to: number, inherited: ground)
  }

  private mutating func set(
    _ keys: inout Path.Keys.Iterator, to new: Int, inherited: Int
  ) {
    guard let key = keys.next() else {
      number = new == inherited ? nil : new
      below = [:]
      return
    }
    below[key, default: PlaceNumbers()].set(&keys, to: new, inherited: number ?? inherited)
    if below[key]?.isEmpty == true { below[key] = nil }
  }
}
