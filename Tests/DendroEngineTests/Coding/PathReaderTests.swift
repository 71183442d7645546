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

  @Test("keys and order are those of each path alone", arguments: 1...20 as ClosedRange<UInt64>)
  func reads(seed: UInt64) throws {
    var random = SeededRandomness(seed: seed)
    var paths = (0..<200).map { _ in Self.path(using: &random) }
    if seed % 2 == 0 {
      paths.sort { a, b in
        a.withUnsafeBytes { a in b.withUnsafeBytes { b in a.lexicographicallyPrecedes(b) } }
      }
    }
    var bytes = ByteWriter()
    var last: [UInt8] = []
    for path in paths {
      // A writer may share fewer bytes than it could.
      let common = zip(path, last).prefix { $0 == $1 }.count
      let shared = Bool.random(using: &random) ? common : Int.random(in: 0...common, using: &random)
      Self.encode(path, sharing: shared, into: &bytes)
      last = path
    }
    let base = try Path(parsing: seed % 3 == 0 ? "" : "base/of/all")
    var reader = ByteReader(bytes.bytes)
    var found = PathReader(below: base)
    var before: Path?
    for path in paths {
      _ = try found.readBytes(&reader)
      #expect(Array(found.bytes) == path)
      #expect(Array(found.wholeBytes) == base.storedBytes + path)
      let whole = path.withUnsafeBytes { Path(storedBytes: $0) }
      let keyCount = found.countKeys()
      #expect(keyCount == whole?.count)
      if let before, let whole {
        let isBelow = whole.keys.starts(with: before.keys)
        let isBehind = found.isBehindLast
        #expect(isBehind == (Array(before.keys).lexicographicallyPrecedes(whole.keys) && !isBelow))
      }
      before = whole
    }
    #expect(reader.isAtEnd)
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
    }
  }
}
