package import DendroStorage
package import DendroTree

/// One write of the log, decoded.
package struct LoggedWrite: Sendable {
  package var lsn: LogSequenceNumber
  /// Milliseconds since 1970.
  package var time: Int64
  /// What it changes of the data: an update without entries if it changes the second root alone.
  package var write: Write
  /// What it changes of the second root.
  package var system: Write?
  /// Who made it, if that was kept.
  package var origin: WriteOrigin?
  /// Bytes of its encoding, before compression.
  package var byteCount: Int
}

/// Reads the writes of one record's payload, which may be hostile: every count is bounded by the bytes
/// that are left.
package struct WriteReader: ~Copyable {
  var reader: ByteReader
  private var paths = PathReader()
  private var lsn: LogSequenceNumber
  private var time: Int64

  package init(_ payload: UnsafeRawBufferPointer, firstLSN: LogSequenceNumber, baseTime: Int64) {
    reader = ByteReader(payload)
    lsn = firstLSN
    time = baseTime
  }

  /// Begins with another record. Nothing is allocated, which counts when records have one write each.
  package mutating func restart(
    _ payload: UnsafeRawBufferPointer, firstLSN: LogSequenceNumber, baseTime: Int64
  ) {
    reader = ByteReader(payload)
    paths.restart()
    lsn = firstLSN
    time = baseTime
  }

  package var isAtEnd: Bool { reader.isAtEnd }

  package mutating func next() throws(CodingError) -> LoggedWrite {
    let start = reader.offset
    try readTime()
    let tag = try reader.tag("a write's kind")
    let origin = tag & LogV1Writer.originFlag != 0 ? try reader.origin() : nil
    let path = try paths.read(&reader, depth: Limits.depth)
    let kind = tag & ~(LogV1Writer.systemFlag | LogV1Writer.originFlag)
    let write = try Self.body(&reader, kind, path)
    let system = tag & LogV1Writer.systemFlag != 0 ? try Self.system(&reader) : nil
    defer { lsn = lsn.next }
    return LoggedWrite(
      lsn: lsn, time: time, write: write, system: system, origin: origin,
      byteCount: reader.offset - start)
  }

  /// Decodes the change of the second root at the end of a write.
  static func system(_ reader: inout ByteReader) throws(CodingError) -> Write {
    let kind = try reader.tag("the kind of a change of the second root")
    // The path is whole: it has nothing in common with one before.
    let count = try reader.count("a path's length", limit: PathReader.byteLimit)
    guard let path = Path(storedBytes: try reader.take(count, "a path")) else {
      throw CodingError(expected: "a path", found: "bytes that are no path's")
    }
    guard path.count <= Limits.depth else {
      throw CodingError(expected: "at most \(Limits.depth) levels", found: "more")
    }
    return try body(&reader, kind, path, allowsBytes: true)
  }

  private mutating func readTime() throws(CodingError) {
    let delta = try reader.count("a write's time", limit: 1 << 53)
    time = time.addingReportingOverflow(Int64(delta)).partialValue
  }

  /// Decodes the body of a write whose kind and path were read.
  ///
  /// - Parameter allowsBytes: whether leaves may be bytes, as in the second root.
  static func body(
    _ reader: inout ByteReader, _ kind: UInt8, _ path: Path, allowsBytes: Bool = false
  ) throws(CodingError) -> Write {
    switch kind {
    case WriteKind.remove.rawValue: return .remove(path)
    case WriteKind.set.rawValue:
      return .set(
        path,
        try NodeCoding.decode(
          &reader, depth: Limits.depth - path.count, allowsBytes: allowsBytes))
    case WriteKind.increment.rawValue:
      return .increment(path, try ScalarCoding.decodeNumber(&reader))
    case WriteKind.setPriority.rawValue: return .setPriority(path, try priority(&reader))
    case WriteKind.update.rawValue:
      return .update(
        path,
        try entries(&reader, depth: Limits.depth - path.count, allowsBytes: allowsBytes))
    default: throw CodingError(expected: "a write's kind, 0 to 4", found: String(kind))
    }
  }

  private static func priority(_ reader: inout ByteReader) throws(CodingError) -> Scalar? {
    switch try reader.tag("a priority") {
    case 0: return nil
    case 1: return try ScalarCoding.decodePriority(&reader)
    case let tag: throw CodingError(expected: "0 or 1 before a priority", found: String(tag))
    }
  }

  /// - Parameter depth: levels that may follow below the update's path.
  private static func entries(
    _ reader: inout ByteReader, depth: Int, allowsBytes: Bool
  ) throws(CodingError) -> [Write.Entry] {
    // An entry takes at least three bytes.
    let count = try reader.count("a count of entries", limit: reader.remaining / 3)
    var entries: [Write.Entry] = []
    // A hostile count reserves no memory.
    entries.reserveCapacity(min(count, 1 << 10))
    var paths = PathReader()
    for _ in 0..<count {
      let kind = try reader.tag("an entry's kind")
      let path = try paths.read(&reader, depth: depth)
      switch kind {
      case WriteKind.remove.rawValue: entries.append(.init(path: path, action: .remove))
      case WriteKind.set.rawValue:
        let node = try NodeCoding.decode(
          &reader, depth: depth - path.count, allowsBytes: allowsBytes)
        entries.append(.init(path: path, action: .set(node)))
      case WriteKind.increment.rawValue:
        entries.append(
          .init(path: path, action: .increment(try ScalarCoding.decodeNumber(&reader))))
      case WriteKind.setPriority.rawValue:
        entries.append(.init(path: path, action: .setPriority(try priority(&reader))))
      default: throw CodingError(expected: "an entry's kind, 0 to 3", found: String(kind))
      }
    }
    return entries
  }
}
