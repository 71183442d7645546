import DendroTesting
import DendroTree
import Testing

@testable import DendroEngine
@testable import DendroStorage

/// Reading paths one after the other gives what reading each alone gives.
@Suite("Path reader")
struct PathReaderTests {
  /// Stored bytes of a path of one to four short keys; some have a key that is not legal.
  private static func path(using random: inout SeededRandomness) -> [UInt8] {
    (0..<Int.random(in: 1...4, using: &random)).flatMap { _ -> [UInt8] in
      let key = (0..<Int.random(in: 1...3, using: &random)).map { _ in
        Int.random(in: 0..<40, using: &random) == 0
          ? UInt8(ascii: "/") : UInt8.random(in: 0x61...0x63, using: &random)
      }
      return [UInt8(key.count)] + key
    }
  }

  private static func encode(_ path: [UInt8], sharing shared: Int, into bytes: inout ByteWriter) {
    bytes.varint(UInt64(shared))
    bytes.varint(UInt64(path.count - shared))
    path[shared...].withUnsafeBytes { bytes.bytes($0) }
  }

  /// 200 paths, half of the times in order, and their encoding.
  ///
  /// - Parameter sharesAll: whether each path shares as many bytes as it could with the one before.
  private static func paths(
    _ seed: UInt64, sharesAll: Bool = false, _ isIncluded: ([UInt8]) -> Bool
  ) -> (paths: [[UInt8]], bytes: [UInt8]) {
    var random = SeededRandomness(seed: seed)
    var paths = (0..<200).map { _ in Self.path(using: &random) }.filter(isIncluded)
    if seed % 2 == 0 {
      paths.sort { a, b in
        a.withUnsafeBytes { a in b.withUnsafeBytes { b in a.lexicographicallyPrecedes(b) } }
      }
    }
    var bytes = ByteWriter()
    var last: [UInt8] = []
    for path in paths {
      let common = zip(path, last).prefix { $0 == $1 }.count
      let isMost = sharesAll || Bool.random(using: &random)
      let shared = isMost ? common : Int.random(in: 0...common, using: &random)
      Self.encode(path, sharing: shared, into: &bytes)
      last = path
    }
    return (paths, Array(bytes.bytes))
  }

  private static func decoded(_ path: [UInt8]) -> Path? {
    path.withUnsafeBytes { Path(storedBytes: $0) }
  }

  @Test("bytes are those of each path alone", arguments: 1...20 as ClosedRange<UInt64>)
  func reads(seed: UInt64) throws {
    let (paths, bytes) = Self.paths(seed) { _ in true }
    try bytes.withUnsafeBytes { bytes in
      var reader = ByteReader(bytes)
      var found = PathReader()
      for path in paths {
        _ = try found.readBytes(&reader)
        #expect(Array(found.bytes) == path)
      }
      #expect(reader.isAtEnd)
    }
  }

  @Test(
    "keys and order are those of each path alone", arguments: 1...20 as ClosedRange<UInt64>,
    [false, true])
  func checks(seed: UInt64, sharesAll: Bool) throws {
    let (paths, bytes) = Self.paths(seed, sharesAll: sharesAll) { Self.decoded($0) != nil }
    try bytes.withUnsafeBytes { bytes in
      var offset = 0
      var found = PathChecker(comparesPaths: true)
      var before: Path?
      for path in paths {
        let isGood = found.read(bytes, at: &offset, depth: Limits.depth)
        #expect(isGood)
        #expect(Array(found.bytes) == path)
        let whole = try #require(Self.decoded(path))
        #expect(found.keyCount == whole.count)
        if let before {
          let isBelow = whole.keys.starts(with: before.keys)
          let isBehind = Array(before.keys).lexicographicallyPrecedes(whole.keys) && !isBelow
          let found = found.isBehindLast
          #expect(found == isBehind || !found && !sharesAll)
        }
        before = whole
      }
      #expect(offset == bytes.count)
    }
  }

  @Test("a path is refused where it alone would be", arguments: 1...20 as ClosedRange<UInt64>)
  func refuses(seed: UInt64) throws {
    let (paths, bytes) = Self.paths(seed) { _ in true }
    bytes.withUnsafeBytes { bytes in
      var offset = 0
      var found = PathChecker(comparesPaths: false)
      for path in paths {
        let isGood = found.read(bytes, at: &offset, depth: Limits.depth)
        #expect(isGood == (Self.decoded(path) != nil))
        if !isGood { break }
      }
    }
  }

  @Test("more shared bytes than there are, and too long a path, are refused")
  func refused() throws {
    for (shared, rest) in [(1, 0), (0, 1 << 20)] as [(UInt64, UInt64)] {
      var bytes = ByteWriter()
      bytes.varint(shared)
      bytes.varint(rest)
      var reader = ByteReader(bytes.bytes)
      #expect(throws: CodingError.self) {
        var paths = PathReader()
        _ = try paths.readBytes(&reader)
      }
      var offset = 0
      var checked = PathChecker(comparesPaths: false)
      let isGood = checked.read(bytes.bytes, at: &offset, depth: Limits.depth)
      #expect(!isGood)
    }
  }
}
