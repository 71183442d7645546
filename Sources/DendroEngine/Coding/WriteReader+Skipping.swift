import DendroStorage
import DendroTree

extension WriteReader {
  /// Passes over the body of a write.
  mutating func skipBody(_ kind: UInt8) throws(CodingError) {
    guard kind == WriteCoding.Kind.update else { return try skipAction(kind) }
    for _ in 0..<(try Self.entryCount(&reader)) {
      let kind = try reader.tag("an entry's kind")
      try PathReader.skip(&reader)
      try skipAction(kind)
    }
  }

  /// Passes over the body of an update, where no entry of it concerns the location.
  ///
  /// - Parameters:
  ///   - base: the path of the update.
  ///   - location: what is read.
  /// - Returns: false where an entry concerns the location; nothing was read then.
  mutating func skipEntries(
    below base: Path, unlessTheyConcern location: ReplayLocation
  ) throws(CodingError) -> Bool {
    let start = reader
    var paths = PathReader(below: base)
    for _ in 0..<(try Self.entryCount(&reader)) {
      let kind = try reader.tag("an entry's kind")
      _ = try paths.readBytes(&reader)
      if location.isConcerned(by: paths.wholeBytes) {
        reader = start
        return false
      }
      try skipAction(kind)
    }
    return true
  }

  mutating func skipAction(_ kind: UInt8) throws(CodingError) {
    switch kind {
    case WriteCoding.Kind.remove: break
    case WriteCoding.Kind.set: try NodeCoding.skip(&reader)
    case WriteCoding.Kind.increment: _ = try ScalarCoding.decodeNumber(&reader)
    case WriteCoding.Kind.setPriority:
      if try reader.tag("a priority") != 0 { _ = try ScalarCoding.decodePriority(&reader) }
    default: throw CodingError(expected: "a write's kind, 0 to 4", found: String(kind))
    }
  }
}

extension PathReader {
  /// Passes over the next path, which no later one is read after.
  static func skip(_ reader: inout ByteReader) throws(CodingError) {
    _ = try reader.count("a shared prefix", limit: byteLimit)
    let rest = try reader.count("a path's length", limit: byteLimit)
    _ = try reader.take(rest, "a path")
  }
}

extension NodeCoding {
  /// Passes over a node.
  ///
  /// - Parameter depth: levels that may still follow below.
  static func skip(_ reader: inout ByteReader, depth: Int = Limits.depth) throws(CodingError) {
    switch reader.isAtEnd ? nil : reader.bytes[reader.offset] {
    case Tag.empty: _ = try reader.tag("a node")
    case Tag.branch:
      _ = try reader.tag("a node")
      try skipChildren(&reader, depth: depth)
    case Tag.branchWithPriority:
      _ = try reader.tag("a node")
      _ = try ScalarCoding.decodePriority(&reader)
      try skipChildren(&reader, depth: depth)
    default:
      guard let end = PackedScalar.leafEnd(validating: reader.bytes, at: reader.offset) else {
        throw CodingError(expected: "a packed leaf", found: reader.nextBytes)
      }
      _ = try reader.take(end - reader.offset, "a packed leaf")
    }
  }

  private static func skipChildren(_ reader: inout ByteReader, depth: Int) throws(CodingError) {
    guard depth > 0 else {
      throw CodingError(expected: "at most \(Limits.depth) levels", found: "more")
    }
    for _ in 0..<(try reader.count("a count of children", limit: reader.remaining / childByteMin)) {
      let length = try reader.count("a key's length", limit: Limits.keyBytes + 1)
      _ = try reader.take(length, "a key")
      try skip(&reader, depth: depth - 1)
    }
  }
}
