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
