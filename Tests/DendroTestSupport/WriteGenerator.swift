package import DendroTree

/// Random writes, from few keys, so that they meet: overwrites, writes below leaves, pruning,
/// priorities, branches that grow wide and shrink again.
package struct WriteGenerator: Sendable {
  package var random: SeededGenerator
  /// The deepest path of a write, and the deepest tree in one.
  package var depthMax = 4
  /// One path in this many leads into a branch with `wideKeyCount` possible children.
  package var wideOneIn = 3
  package var wideKeyCount = 400
  /// The longest string of all but one in 40 leaves; those have up to 20 times as many bytes.
  package var stringByteCountMax = 30

  package init(seed: UInt64) { random = SeededGenerator(seed: seed) }

  /// Keys where the order is not that of plain strings, and where one begins another.
  private static let keys: [Key] = [
    "a", "b", "c", "ab", "abc", "0", "-0", "00", "1", "01", "10", "9", "-3", "2147483648", "z", "é",
    "e\u{301}", "\u{10000}", "\u{FF21}", "a key that is longer than twenty-three bytes",
    "a key that is longer than twenty-three bytes too",
  ].map { key($0) }

  private static func key(_ string: String) -> Key {
    do {
      return try Key(string)
    } catch {
      preconditionFailure("\(error)")
    }
  }

  package mutating func key() -> Key {
    // Mostly the first few, so that branches get emptied too.
    let count = random.oneIn(3) ? WriteGenerator.keys.count : 4
    return WriteGenerator.keys[random.below(count)]
  }

  private mutating func wideKey() -> Key {
    let number = random.below(wideKeyCount)
    switch random.below(8) {
    case 0: return WriteGenerator.key(String(number))
    case 1: return WriteGenerator.key("w" + String(repeating: "-", count: 30 + number % 700))
    default: return WriteGenerator.key("-NjEtLV-\(number * 7919 % wideKeyCount)-\(number)")
    }
  }

  package mutating func path(maxCount: Int? = nil) -> Path {
    let maxCount = maxCount ?? depthMax
    if maxCount > 1 && random.oneIn(wideOneIn) {
      var path = Path(keys: [WriteGenerator.key("wide"), wideKey()])
      if maxCount > 2 && random.oneIn(3) { path = path.appending(key()) }
      return path
    }
    let count = random.oneIn(50) ? 0 : 1 + random.below(max(maxCount, 1))
    return Path(keys: (0..<min(count, maxCount)).map { _ in key() })
  }

  package mutating func number() -> Number {
    switch random.below(10) {
    case 0: .integer(.max)
    case 1: .integer(.min)
    case 2: .double(Double(random.below(8)))
    case 3: .double(Double(random.below(1_000_000)) / 3 - 7)
    case 4: .double(-0.0)
    case 5: .integer(Int64(bitPattern: random.next()) >> Int64(random.below(64)))
    default: .integer(Int64(random.below(8)) - 3)
    }
  }

  package mutating func string() -> String {
    let pieces = ["a", "B", "é", "😀", "\u{FF21}", "0", " "]
    var byteCount = random.below(stringByteCountMax + 1)
    if random.oneIn(40) { byteCount *= 20 }
    var string = ""
    while string.utf8.count < byteCount { string += pieces[random.below(pieces.count)] }
    return string
  }

  package mutating func scalar() -> Scalar {
    switch random.below(5) {
    case 0: .bool(random.oneIn(2))
    case 1, 2: number().scalar
    default: .string(string())
    }
  }

  /// None most of the time.
  package mutating func priority() -> Scalar? {
    switch random.below(12) {
    case 0: number().scalar
    case 1: .string(string())
    default: nil
    }
  }

  /// A tree of at most that height; rarely empty.
  package mutating func node(height: Int) -> Node {
    if random.oneIn(20) { return .empty }
    if height == 0 || random.oneIn(2) { return Node(scalar(), priority: priority()) }
    var builder = NodeBuilder()
    if random.oneIn(12) {
      for _ in 0..<random.below(200) { builder.append(wideKey(), node(height: 0)) }
    } else {
      for _ in 0..<1 + random.below(5) { builder.append(key(), node(height: height - 1)) }
    }
    return builder.finish(priority: priority())
  }

  /// A write that `validate()` accepts.
  package mutating func write() -> Write {
    switch random.below(10) {
    case 0, 1: return .remove(path())
    case 2: return .increment(path(), number())
    case 3: return .setPriority(path(), random.oneIn(3) ? nil : priority() ?? .integer(1))
    case 4, 5:
      for _ in 0..<4 {
        let write = Write.update(path(maxCount: 2), (0..<1 + random.below(6)).map { _ in entry() })
        do {
          try write.validate()
          return write
        } catch {
          continue  // Paths in conflict: draw again.
        }
      }
      return .update(path(), [])
    default:
      let path = path()
      return .set(path, node(height: random.below(depthMax)))
    }
  }

  private mutating func entry() -> Write.Entry {
    let action: Write.Entry.Action =
      switch random.below(8) {
      case 0: .remove
      case 1: .increment(number())
      case 2: .setPriority(random.oneIn(3) ? nil : priority() ?? .string("p"))
      default: .set(node(height: random.below(3)))
      }
    return Write.Entry(path: path(maxCount: 3), action: action)
  }
}
