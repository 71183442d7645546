import DendroTree
import DendroTestSupport

extension FuzzTarget {
  /// One byte that says what the rest is: a text, stored bytes, or two keys.
  static let path = FuzzTarget(
    "path", "paths and keys, as texts and as stored bytes, and the order of keys", byteLimit: 2048,
    weight: 240,
    seeds: {
      let texts = [
        "", "/", "/a/b", "a//b/", "0/-1/2147483648/00/-0", "é/e\u{301}/\u{FF21}/\u{1F332}", "a.b",
        "a#b", "\u{7F}", String(repeating: "k/", count: 40), String(repeating: "x", count: 769),
      ]
      var seeds = texts.map { [0] + Array($0.utf8) }
      for text in texts {
        guard let path = try? Path(parsing: text) else { continue }
        seeds.append([1] + path.storedBytes)
      }
      let pairs = [("1", "01"), ("-1", "-01"), ("a", "ab"), ("\u{FF21}", "\u{10000}"), ("9", "10")]
      seeds += pairs.map { [2, UInt8($0.utf8.count)] + Array($0.utf8) + Array($1.utf8) }
      return seeds
    },
    body: { bytes in
      var input = FuzzInput(bytes)
      switch input.uint8() % 3 {
      case 0:
        let text = input.text()
        if let path = attempt({ () throws(ValidationError) in try Path(parsing: text) }) {
          try PathChecks.check(path)
        }
        _ = Key(bound: text).string
      case 1:
        let stored = input.remaining()
        if let path = stored.withUnsafeBytes({ Path(storedBytes: $0) }) {
          try require(path.storedBytes == stored, "\(path) has two stored forms")
          try PathChecks.check(path)
        }
      default:
        let first = input.bytes(Int(input.uint8()))
        try PathChecks.compare(first, input.remaining())
      }
    })
}

private enum PathChecks {
  static func check(_ path: Path) throws {
    let keys = Array(path.keys)
    try require(keys.count == path.count, "\(path) has \(keys.count) keys, not \(path.count)")
    try require(Path(keys: keys) == path, "\(path) is another path made of its keys")
    let again = attempt { () throws(ValidationError) in try Path(parsing: path.description) }
    try require(again == path, "\(path) is another path read from its text")
    let stored = path.storedBytes.withUnsafeBytes { Path(storedBytes: $0) }
    try require(stored == path, "\(path) is another path read from its stored bytes")
    for count in 0...min(keys.count, 8) {
      let joined = path.prefix(count).appending(path.dropFirst(count))
      try require(joined == path, "\(path) is another path cut behind \(count) keys and joined")
      try require(
        path.prefix(count).isPrefix(of: path)
          && path.relative(to: path.prefix(count)) == path.dropFirst(count),
        "\(path) is not below its first \(count) keys")
    }
    for key in keys { try check(key) }
  }

  private static func check(_ key: Key) throws {
    let text = key.string
    try require(
      attempt { () throws(ValidationError) in try Key(text) } == key,
      "\(text) is another key read from its text")
    try require(Key(bound: text) == key, "\(text) is another key as a bound")
    try require(
      key.withOrderedBytes { Key(orderedBytes: $0) } == key,
      "\(text) is another key read from its ordered bytes")
  }

  static func compare(_ first: [UInt8], _ second: [UInt8]) throws {
    let keys = [first, second].compactMap { bytes in
      bytes.withUnsafeBytes { bytes in
        attempt { () throws(ValidationError) in try Key(utf8: bytes) }
      }
    }
    for (key, bytes) in zip(keys, [first, second]) where keys.count == 2 {
      try check(key)
      try require(Array(key.string.utf8) == bytes, "\(key) was spelled otherwise")
    }
    guard keys.count == 2 else { return }
    let (a, b) = (keys[0], keys[1])
    try require(
      (a < b) == ModelQuery.keyPrecedes(a.string, b.string)
        && (b < a) == ModelQuery.keyPrecedes(b.string, a.string) && (a == b) == (first == second),
      "\(a) and \(b) are in another order than the model's")
  }
}
