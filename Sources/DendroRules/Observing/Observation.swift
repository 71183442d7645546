/// Looks at trees, one after the other in one piece of memory: noting one allocates nothing, and all of them are kept
/// in one array.
///
/// | offset | size | field |
/// | --- | --- | --- |
/// | 0 | 1 | the `Sight`; the highest bit is set for the tree after the write |
/// | 1 | 4 | n, the number of the path's bytes |
/// | 5 | 8 | m, the number of the detail's bytes |
/// | 13 | n | the stored bytes of the path |
/// | 13 + n | m | the detail: a packed value, the stored bytes of keys, or nothing |
///
/// A packed value is a byte for its kind (0 null, 1 false, 2 true, 3 integer, 4 double, 5 string), then the 8 bytes of
/// a number or the UTF-8 of a string.
struct Observation {
  static let headByteCount = 13
  private static let newFlag: UInt8 = 0x80

  let isNew: Bool
  let sight: Sight
  let path: UnsafeRawBufferPointer
  let detail: UnsafeRawBufferPointer

  /// Reads the observation at the beginning of some.
  init?(_ bytes: UnsafeRawBufferPointer) {
    guard bytes.count >= Self.headByteCount,
      let sight = Sight(rawValue: bytes[0] & ~Self.newFlag)
    else { return nil }
    self.sight = sight
    isNew = bytes[0] & Self.newFlag != 0
    let pathByteCount = Int(bytes.loadUnaligned(fromByteOffset: 1, as: UInt32.self))
    let detailByteCount = Int(bytes.loadUnaligned(fromByteOffset: 5, as: UInt64.self))
    let pathEnd = Self.headByteCount + pathByteCount
    path = UnsafeRawBufferPointer(rebasing: bytes[Self.headByteCount..<pathEnd])
    detail = UnsafeRawBufferPointer(rebasing: bytes[pathEnd..<pathEnd + detailByteCount])
  }

  var byteCount: Int { Self.headByteCount + path.count + detail.count }

  /// Writes all but the path and the detail.
  static func writeHead(
    _ sight: Sight, isNew: Bool, pathByteCount: Int, detailByteCount: Int,
    to target: UnsafeMutableRawPointer
  ) {
    target.storeBytes(of: sight.rawValue | (isNew ? newFlag : 0), as: UInt8.self)
    (target + 1).storeBytes(of: UInt32(truncatingIfNeeded: pathByteCount), as: UInt32.self)
    (target + 5).storeBytes(of: UInt64(truncatingIfNeeded: detailByteCount), as: UInt64.self)
  }

  /// The value that the detail is.
  var value: Value {
    switch detail.first {
    case 1: .bool(false)
    case 2: .bool(true)
    case 3: .integer(detail.loadUnaligned(fromByteOffset: 1, as: Int64.self))
    case 4: .double(detail.loadUnaligned(fromByteOffset: 1, as: Double.self))
    case 5: .string(Text(UnsafeRawBufferPointer(rebasing: detail[1...])))
    default: .null
    }
  }
}

extension Value {
  /// The bytes of a packed value.
  var packedByteCount: Int {
    switch self {
    case .integer, .double: 9
    case .string(let text): 1 + text.count
    default: 1
    }
  }

  func writePacked(to target: UnsafeMutableRawPointer) {
    let kind: UInt8
    switch self {
    case .bool(let value): kind = value ? 2 : 1
    case .integer(let value):
      kind = 3
      (target + 1).storeBytes(of: value, as: Int64.self)
    case .double(let value):
      kind = 4
      (target + 1).storeBytes(of: value, as: Double.self)
    case .string(let text):
      kind = 5
      if let source = text.bytes.baseAddress {
        (target + 1).copyMemory(from: source, byteCount: text.count)
      }
    case .null, .snapshot, .json, .unusable: kind = 0
    }
    target.storeBytes(of: kind, as: UInt8.self)
  }
}
