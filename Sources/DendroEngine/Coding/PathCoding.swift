import DendroStorage
import DendroTree

/// Encodes a path by the number of bytes of its stored form that it shares with the previous path, and the
/// rest: paths that follow each other mostly share their beginnings.
///
/// | field | size |
/// | --- | --- |
/// | bytes shared with the previous path's stored form | varint |
/// | bytes that follow | varint |
/// | those bytes | as counted |
enum PathCoding {
  static func encode(_ path: Path, after previous: Path, into buffer: PayloadBuffer) {
    path.storedBytes.withUnsafeBytes { bytes in
      previous.storedBytes.withUnsafeBytes { encode(bytes, after: $0, into: buffer) }
    }
  }

  @inline(__always)
  static func encode(
    _ path: UnsafeRawBufferPointer, after previous: UnsafeRawBufferPointer,
    into buffer: PayloadBuffer
  ) {
    let shared = sharedPrefixCount(path, previous)
    buffer.appendVarint(shared)
    buffer.appendVarint(path.count - shared)
    buffer.append(UnsafeRawBufferPointer(rebasing: path[shared...]))
  }

  static func sharedPrefixCount(_ a: UnsafeRawBufferPointer, _ b: UnsafeRawBufferPointer) -> Int {
    let count = min(a.count, b.count)
    var i = 0
    while i &+ 8 <= count {
      let x = a.loadUnaligned(fromByteOffset: i, as: UInt64.self)
      let y = b.loadUnaligned(fromByteOffset: i, as: UInt64.self)
      if x != y {
        return i &+ (UInt64(littleEndian: x) ^ UInt64(littleEndian: y)).trailingZeroBitCount / 8
      }
      i &+= 8
    }
    while i < count, a[i] == b[i] { i &+= 1 }
    return i
  }
}

/// Reads paths that `PathCoding` wrote one after the other.
struct PathReader {
  /// The stored form of the path read last.
  private(set) var bytes: [UInt8] = []

  /// Bytes of a path's stored form at most: as many keys as the depth allows, each as long as a key
  /// may be with its length and the longest ordered form.
  private static let byteLimit = (Limits.depth + 1) * (Limits.keyBytes + 2)

  /// Reads the next path's bytes; `shared` bytes of the previous one stay.
  mutating func readBytes(_ reader: inout ByteReader) throws(CodingError) -> Int {
    let shared = try reader.count("a shared prefix", limit: bytes.count)
    let rest = try reader.count("a path's length", limit: Self.byteLimit - shared)
    let suffix = try reader.take(rest, "a path")
    bytes.removeLast(bytes.count - shared)
    bytes.append(contentsOf: suffix)
    return shared
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
    guard let path = bytes.withUnsafeBytes({ Path(storedBytes: $0) }) else {
      throw CodingError(expected: "a path", found: "bytes that are no path's")
    }
    guard path.count <= depth else {
      throw CodingError(expected: "at most \(Limits.depth) levels", found: "more")
    }
    return path
  }
}

extension ByteReader {
  /// A varint that is at most `limit`.
  mutating func count(_ what: String, limit: Int) throws(CodingError) -> Int {
    let value: UInt64
    do throws(ByteError) {
      value = try varint()
    } catch {
      throw CodingError(expected: what, found: error.description)
    }
    guard value <= UInt64(max(limit, 0)) else {
      throw CodingError(expected: "\(what) of at most \(limit)", found: String(value))
    }
    return Int(value)
  }

  mutating func take(_ count: Int, _ what: String) throws(CodingError) -> UnsafeRawBufferPointer {
    do throws(ByteError) {
      return try bytes(count)
    } catch {
      throw CodingError(expected: what, found: error.description)
    }
  }

  mutating func tag(_ what: String) throws(CodingError) -> UInt8 {
    do throws(ByteError) {
      return try uint8()
    } catch {
      throw CodingError(expected: what, found: error.description)
    }
  }
}
