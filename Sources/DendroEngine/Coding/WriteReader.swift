package import DendroStorage
package import DendroTree

/// One write as it stands in the log.
package struct LoggedWrite: Sendable {
  package var lsn: LogSequenceNumber
  /// Milliseconds since 1970.
  package var time: Int64
  package var write: Write
  /// Bytes of its encoding, before compression.
  package var byteCount: Int
}

/// Reads the writes of one record's payload, which may be hostile: every count is bounded by the bytes
/// that are left.
package struct WriteReader {
  private var reader: ByteReader
  private var paths = PathReader()
  private var lsn: LogSequenceNumber
  private var time: Int64

  package init(_ payload: UnsafeRawBufferPointer, firstLSN: LogSequenceNumber, baseTime: Int64) {
    reader = ByteReader(payload)
    lsn = firstLSN
    time = baseTime
  }

  package var isAtEnd: Bool { reader.isAtEnd }

  package mutating func next() throws(CodingError) -> LoggedWrite {
    let start = reader.offset
    let delta = try reader.count("a write's time", limit: 1 << 53)
    time = time.addingReportingOverflow(Int64(delta)).partialValue
    let kind = try reader.tag("a write's kind")
    let path = try paths.read(&reader)
    let write: Write
    switch kind {
    case WriteCoding.Kind.remove: write = .remove(path)
    case WriteCoding.Kind.set: write = .set(path, try NodeCoding.decode(&reader))
    case WriteCoding.Kind.increment:
      write = .increment(path, try ScalarCoding.decodeNumber(&reader))
    case WriteCoding.Kind.setPriority: write = .setPriority(path, try priority())
    case WriteCoding.Kind.update: write = .update(path, try entries())
    default: throw CodingError(expected: "a write's kind, 0 to 4", found: String(kind))
    }
    defer { lsn = lsn.next }
    return LoggedWrite(lsn: lsn, time: time, write: write, byteCount: reader.offset - start)
  }

  private mutating func priority() throws(CodingError) -> Scalar? {
    switch try reader.tag("a priority") {
    case 0: return nil
    case 1: return try ScalarCoding.decodePriority(&reader)
    case let tag: throw CodingError(expected: "0 or 1 before a priority", found: String(tag))
    }
  }

  private mutating func entries() throws(CodingError) -> [Write.Entry] {
    // An entry takes at least three bytes.
    let count = try reader.count("a count of entries", limit: reader.remaining / 3)
    var entries: [Write.Entry] = []
    entries.reserveCapacity(count)
    var paths = PathReader()
    for _ in 0..<count {
      let kind = try reader.tag("an entry's kind")
      let path = try paths.read(&reader)
      switch kind {
      case WriteCoding.Kind.remove: entries.append(.init(path: path, action: .remove))
      case WriteCoding.Kind.set:
        entries.append(.init(path: path, action: .set(try NodeCoding.decode(&reader))))
      case WriteCoding.Kind.increment:
        entries.append(
          .init(path: path, action: .increment(try ScalarCoding.decodeNumber(&reader))))
      case WriteCoding.Kind.setPriority:
        entries.append(.init(path: path, action: .setPriority(try priority())))
      default: throw CodingError(expected: "an entry's kind, 0 to 3", found: String(kind))
      }
    }
    return entries
  }
}
