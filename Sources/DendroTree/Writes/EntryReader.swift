/// Goes through the entries of an update's trusted body.
///
/// Unsafe: see `WriteView`, whose memory it reads. It puts the paths together in memory of its maker.
struct EntryReader {
  /// Bytes of a stored path at most: as many keys as the depth allows, each with its length and in the longest
  /// ordered form.
  static let pathByteCountMax = (Limits.depth + 1) * (Limits.keyBytes + 3)

  /// Behind what was read.
  var next: UnsafeRawPointer
  private(set) var remaining: Int
  private(set) var kind = WriteKind.remove
  /// The stored bytes of the entry's whole path; memory for `pathByteCountMax` bytes.
  let path: UnsafeMutableRawPointer
  private(set) var pathByteCount: Int
  /// The bytes at the beginning of the path that are those of the entry before.
  private(set) var sharedByteCount = 0
  private let baseByteCount: Int

  /// Begins before the first entry, with the path of the update in `path`.
  init(_ body: UnsafeRawBufferPointer, path: UnsafeMutableRawPointer, baseByteCount: Int) {
    let start = body.baseAddress.unsafelyUnwrapped
    let (count, prefix) = Varint.readTrusted(start)
    next = start + prefix
    remaining = count
    self.path = path
    self.baseByteCount = baseByteCount
    pathByteCount = baseByteCount
  }

  var wholePath: UnsafeRawBufferPointer {
    UnsafeRawBufferPointer(start: path, count: pathByteCount)
  }

  /// Reads the kind and the path of the next entry, whose value comes next then.
  ///
  /// - Returns: false at the end.
  @inline(__always)
  mutating func advance() -> Bool {
    guard remaining > 0 else { return false }
    remaining &-= 1
    guard let kind = WriteKind(rawValue: next.load(as: UInt8.self)) else {
      preconditionFailure("the kind of an entry was checked")
    }
    self.kind = kind
    let (shared, sharedPrefix) = Varint.readTrusted(next + 1)
    let (rest, restPrefix) = Varint.readTrusted(next + (1 &+ sharedPrefix))
    next += 1 &+ sharedPrefix &+ restPrefix
    sharedByteCount = baseByteCount &+ shared
    precondition(
      sharedByteCount <= pathByteCount && sharedByteCount &+ rest <= Self.pathByteCountMax,
      "the path of an entry was checked")
    (path + sharedByteCount).copyMemory(from: next, byteCount: rest)
    next += rest
    pathByteCount = sharedByteCount &+ rest
    return true
  }

  // MARK: Siblings

  /// The bytes of the last key, with its length, and of the leaf of the next entry, if that sets a short leaf directly
  /// below the same path; 0 if not. The value of the present entry was passed over.
  func siblingByteCount(below parentByteCount: Int) -> Int {
    guard remaining > 0, next.load(as: UInt8.self) == WriteKind.set.rawValue else { return 0 }
    let (shared, sharedPrefix) = Varint.readTrusted(next + 1)
    let (rest, restPrefix) = Varint.readTrusted(next + (1 &+ sharedPrefix))
    let own = next + (1 &+ sharedPrefix &+ restPrefix)
    let sharedKeyByteCount = baseByteCount &+ shared &- parentByteCount
    guard sharedKeyByteCount >= 0, rest > 0 else { return 0 }
    // The length of the key may be among the shared bytes.
    let (keyByteCount, prefix) = Varint.readTrusted(
      sharedKeyByteCount > 0 ? UnsafeRawPointer(path + parentByteCount) : own)
    let byteCount = sharedKeyByteCount &+ rest
    guard sharedKeyByteCount == 0 || sharedKeyByteCount >= prefix,
      prefix &+ keyByteCount == byteCount
    else { return 0 }
    let leafByteCount = BodyBytes.shortLeafByteCount(own + rest)
    return leafByteCount > 0 ? byteCount &+ leafByteCount : 0
  }

  /// Passes over the value of the entry.
  @inline(__always)
  mutating func skipValue() { next = BodyBytes.valueEnd(kind, next) }
}
