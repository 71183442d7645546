import DendroStorage
import DendroTree

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
