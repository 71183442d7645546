import DendroStorage
import DendroTree

/// Reads paths that `BodyWriter` wrote one after the other. Nothing is allocated for a path once there is room for
/// the longest one.
struct PathReader: ~Copyable {
  /// Bytes of a path's stored form at most: as many keys as the depth allows, each as long as a key
  /// may be with its length and the longest ordered form.
  static let byteLimit = (Limits.depth + 1) * (Limits.keyBytes + 2)

  /// The stored form of the path read last, and of the one before it; both behind that of the base.
  private var current = RawBuffer()
  private var last = RawBuffer()
  private let baseByteCount: Int
  private var byteCount = 0
  private var lastByteCount = 0
  /// Where the keys end of the path read last that are known to be legal.
  private var keyEnds: [Int] = []
  /// How many bytes at the beginning of the path read last are whole keys of the one before.
  private var sharedKeysEnd = 0

  /// - Parameter base: the paths are below it, and `wholeBytes` begin with it.
  init(below base: Path = .root) {
    let bytes = base.storedBytes
    baseByteCount = bytes.count
    current.reserve(bytes.count + 64)
    last.reserve(bytes.count + 64)
    bytes.withUnsafeBytes { bytes in
      guard let start = bytes.baseAddress else { return }
      current.base.copyMemory(from: start, byteCount: bytes.count)
      last.base.copyMemory(from: start, byteCount: bytes.count)
    }
  }

  /// Forgets the path read last, as if none was read yet.
  mutating func restart() {
    byteCount = 0
    lastByteCount = 0
    keyEnds.removeAll(keepingCapacity: true)
    sharedKeysEnd = 0
  }

  /// The stored form of the path read last; valid until the next one is read.
  var bytes: UnsafeRawBufferPointer {
    UnsafeRawBufferPointer(start: current.base + baseByteCount, count: byteCount)
  }

  /// The same with the base in front.
  var wholeBytes: UnsafeRawBufferPointer {
    UnsafeRawBufferPointer(start: current.base, count: baseByteCount + byteCount)
  }

  /// Reads the next path's bytes, without looking at them; `shared` bytes of the previous one stay.
  mutating func readBytes(_ reader: inout ByteReader) throws(CodingError) -> Int {
    let shared = try reader.count("a shared prefix", limit: byteCount)
    let rest = try reader.count("a path's length", limit: Self.byteLimit - shared)
    let suffix = try reader.take(rest, "a path")
    swap(&current, &last)
    lastByteCount = byteCount
    byteCount = shared + rest
    current.reserve(baseByteCount + byteCount, keeping: baseByteCount)
    let start = current.base + baseByteCount
    start.copyMemory(from: last.base + baseByteCount, byteCount: shared)
    if let source = suffix.baseAddress {
      (start + shared).copyMemory(from: source, byteCount: rest)
    }
    while let end = keyEnds.last, end > shared { keyEnds.removeLast() }
    sharedKeysEnd = keyEnds.last ?? 0
    return shared
  }

  /// The number of keys of the path read last; nil unless its bytes are the stored form of legal keys.
  ///
  /// - Complexity: O(bytes behind the keys that it shares with a path that was counted before).
  mutating func countKeys() -> Int? {
    let bytes = bytes
    var offset = keyEnds.last ?? 0
    while offset < bytes.count {
      guard let end = Path.keyEnd(validating: bytes, at: offset) else { return nil }
      keyEnds.append(end)
      offset = end
    }
    return keyEnds.count
  }

  /// Whether the path read last comes after the one before it and is not below it. Both were counted.
  var isBehindLast: Bool {
    let before = UnsafeRawBufferPointer(start: last.base + baseByteCount, count: lastByteCount)
    return Path.storedBytes(
      UnsafeRawBufferPointer(rebasing: before[sharedKeysEnd...]),
      precedeAsSiblings: UnsafeRawBufferPointer(rebasing: bytes[sharedKeysEnd...]))
  }

  /// The path read last, below the base.
  func wholePath() throws(CodingError) -> Path {
    guard let path = Path(storedBytes: wholeBytes) else {
      throw CodingError(expected: "a path", found: "bytes that are no path's")
    }
    return path
  }

  /// - Parameter depth: keys that the path may have.
  mutating func read(_ reader: inout ByteReader, depth: Int) throws(CodingError) -> Path {
    _ = try readBytes(&reader)
    return try path(depth: depth)
  }

  /// The path read last.
  ///
  /// - Parameter depth: keys that it may have: trees are walked by recursion, so that a path of
  ///   thousands would take the stack.
  func path(depth: Int = Limits.depth) throws(CodingError) -> Path {
    guard let path = Path(storedBytes: bytes) else {
      throw CodingError(expected: "a path", found: "bytes that are no path's")
    }
    guard path.count <= depth else {
      throw CodingError(expected: "at most \(Limits.depth) levels", found: "more")
    }
    return path
  }
}
