/// One key of a path and the rest of the path, in stored bytes that are known to be valid.
struct PathStep {
  let key: UnsafeRawPointer
  let keyCount: Int
  /// The start of the rest of the path, which is empty unless `hasRest`.
  let rest: UnsafeRawPointer
  let end: UnsafeRawPointer

  @inline(__always)
  init(_ start: UnsafeRawPointer, end: UnsafeRawPointer) {
    let (count, prefix) = Varint.readTrusted(start)
    key = start + prefix
    keyCount = count
    rest = start + prefix + count
    self.end = end
  }

  /// The first key of a path that has one.
  @inline(__always)
  init(stored path: UnsafeRawBufferPointer) {
    let start = path.baseAddress.unsafelyUnwrapped
    self.init(start, end: start + path.count)
  }

  /// Makes a path of one key from the key's ordered bytes.
  @inline(__always)
  init(key bytes: UnsafeRawBufferPointer) {
    key = bytes.baseAddress.unsafelyUnwrapped
    keyCount = bytes.count
    rest = key + bytes.count
    end = rest
  }

  @inline(__always) var hasRest: Bool { rest < end }
  @inline(__always) var next: PathStep { PathStep(rest, end: end) }
  var restBytes: UnsafeRawBufferPointer { UnsafeRawBufferPointer(start: rest, count: end - rest) }
}
