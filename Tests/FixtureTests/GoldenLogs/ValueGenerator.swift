import Dendro
import DendroTestSupport
import Foundation

/// Random values as an app has them: dictionaries, arrays, numbers of several types, nothing, metadata, server values.
struct ValueGenerator {
  var random: SeededGenerator

  init(seed: UInt64) { random = SeededGenerator(seed: seed) }

  struct Record: Codable {
    var name: String
    var age: Int
    var tags: [String]
    var scores: [String: Double]
    var inner: [String: [Int]]?
  }

  mutating func text() -> String {
    let pieces = ["a", "B", "é", "😀", "0", " ", "longer piece of text "]
    return (0..<random.below(random.oneIn(12) ? 120 : 8)).map { _ in
      pieces[random.below(pieces.count)]
    }.joined()
  }

  mutating func key() -> String {
    switch random.below(12) {
    case 0: String(random.below(40) - 3)
    case 1: String(repeating: "k", count: 1 + random.below(200))
    case 2: "ü\(random.below(5))"
    case 3: "00\(random.below(3))"
    default: "f\(random.below(14))"
    }
  }

  mutating func path(keyCountMax: Int) -> String {
    (0...random.below(keyCountMax)).map { _ in key() }.joined(separator: "/")
  }

  mutating func update() -> [String: Any] {
    var update: [String: Any] = [:]
    for _ in 0...random.below(random.oneIn(8) ? 200 : 6) {
      let key = key()
      switch random.below(10) {
      case 0: update[key] = NSNull()
      case 1: update[key] = ServerValue.increment(NSNumber(value: random.below(9)))
      case 2: update[key + "/.priority"] = random.below(4)
      case 3: for _ in 0..<4 { update["\(key)/\(self.key())"] = text() }
      default: update[key] = value(depth: 1)
      }
    }
    // No path above another.
    for key in update.keys where update.keys.contains(where: { $0.hasPrefix(key + "/") }) {
      update[key] = nil
    }
    return update
  }

  mutating func value(depth: Int) -> Any {
    switch random.below(16) {
    case 0: return ServerValue.timestamp()
    case 1: return ServerValue.increment(NSNumber(value: random.below(20)))
    case 2: return [".value": text(), ".priority": random.below(3)] as [String: Any]
    case 3 where depth < 3:
      var branch = dictionary(depth: depth) { $0.value(depth: $1) }
      branch[".priority"] = random.oneIn(2) ? "high" : ServerValue.timestamp()
      return branch
    case 4..<8 where depth < 3: return dictionary(depth: depth) { $0.value(depth: $1) }
    default: return plainValue(depth: depth)
    }
  }

  /// Without metadata and server values.
  mutating func plainValue(depth: Int) -> Any {
    switch random.below(depth < 3 ? 15 : 9) {
    case 0: return random.below(2_000_000) - 1000
    case 1: return Double(random.below(1000)) / 7
    case 2: return random.oneIn(2)
    case 3: return NSNumber(value: random.below(300))
    case 4: return NSNull()
    case 5...8: return text()
    case 9: return (0..<random.below(5)).map { _ in plainValue(depth: depth + 1) }
    case 10:
      var strings: [String: String] = [:]
      for _ in 0..<random.below(9) { strings[key()] = text() }
      return strings
    case 11:
      var numbers: [String: Int] = [:]
      for _ in 0..<random.below(9) { numbers[key()] = random.below(900) }
      return numbers
    default: return dictionary(depth: depth) { $0.plainValue(depth: $1) }
    }
  }

  private mutating func dictionary(
    depth: Int, _ value: (inout ValueGenerator, Int) -> Any
  ) -> [String: Any] {
    var dictionary: [String: Any] = [:]
    for _ in 0..<random.below(random.oneIn(15) ? 150 : 7) {
      dictionary[key()] = value(&self, depth + 1)
    }
    return dictionary
  }

  mutating func record() -> Record {
    Record(
      name: text(), age: random.below(90), tags: (0..<random.below(4)).map { _ in text() },
      scores: ["a": Double(random.below(9)) / 4, key(): 1],
      inner: random.oneIn(2) ? nil : [key(): [1, 2]])
  }

  /// A text of JSON, with server values.
  mutating func json() -> String {
    var fields = ["\"name\": \"n\(random.below(10))\""]
    if random.oneIn(2) { fields.append("\"at\": {\".sv\": \"timestamp\"}") }
    if random.oneIn(2) { fields.append("\"n\": {\".sv\": {\"increment\": \(random.below(5))}}") }
    if random.oneIn(2) { fields.append("\"list\": [1, null, {\"x\": 2.5}]") }
    if random.oneIn(3) { fields.append("\".priority\": {\".sv\": \"timestamp\"}") }
    if random.oneIn(3) { fields.append("\"deep\": {\"a\": {\"b\": true}, \".priority\": 3}") }
    return "{" + fields.joined(separator: ", ") + "}"
  }
}
