package import DendroStorage
package import DendroTree

/// Reads the writes of a record of format version 1 as they are applied: checked, but not decoded.
///
/// The payload may be hostile: every count is bounded by the bytes that are left.
package struct LogV1Reader: ~Copyable {
  private var reader = ByteReader(UnsafeRawBufferPointer(start: nil, count: 0))
  private var path = PathChecker(comparesPaths: false)
  private var checker = BodyChecker()
  /// Nil until a write changes the second root.
  private var systemReader: SystemReader?
  /// Of the write read last: who made it, if that was kept.
  package private(set) var origin: WriteOrigin?
  /// Whether the write read last changes the second root.
  package private(set) var changesSystem = false
  /// Of the write read last.
  package private(set) var lsn = LogSequenceNumber.zero
  /// Of the write read last, milliseconds since 1970.
  package private(set) var time: Int64 = 0

  package init() {}

  /// Begins with a record. Nothing is allocated, which counts when records have one write each.
  package mutating func restart(_ record: RecordInfo, _ payload: UnsafeRawBufferPointer) {
    restart(payload, firstLSN: record.firstLSN, baseTime: record.baseTime)
  }

  package mutating func restart(
    _ payload: UnsafeRawBufferPointer, firstLSN: LogSequenceNumber, baseTime: Int64
  ) {
    reader = ByteReader(payload)
    path.restart()
    lsn = LogSequenceNumber(firstLSN.rawValue &- 1)
    time = baseTime
  }

  package var isAtEnd: Bool { reader.isAtEnd }

  /// The time of the next write, which is not passed over.
  func nextTime() throws(CodingError) -> Int64 {
    var copy = reader
    let delta = try copy.count("a write's time", limit: 1 << 53)
    return time.addingReportingOverflow(Int64(delta)).partialValue
  }

  /// The change of the second root by the write read last; nil if there is none. Borrowed as that write is.
  package var system: WriteView? { changesSystem ? systemReader?.view(of: reader.bytes) : nil }

  /// Reads the next write.
  ///
  /// - Returns: what it changes of the data, borrowed from the payload and from this reader until it reads another one.
  ///   `system` has the rest of it.
  package mutating func next() throws(CodingError) -> WriteView {
    let delta = try reader.count("a write's time", limit: 1 << 53)
    time = time.addingReportingOverflow(Int64(delta)).partialValue
    var tag = try reader.tag("a write's kind")
    changesSystem = tag & LogV1Writer.systemFlag != 0
    origin = nil
    if tag & LogV1Writer.originFlag != 0 { origin = try reader.origin() }
    tag &= ~(LogV1Writer.systemFlag | LogV1Writer.originFlag)
    var end = reader.offset
    guard let kind = WriteKind(rawValue: tag),
      path.read(reader.bytes, at: &end, depth: Limits.depth)
    else { throw damage() }
    _ = try reader.take(end - reader.offset, "a write's path")
    let facts = checker.check(kind, reader.bytes, at: &end, depth: Limits.depth - path.keyCount)
    guard let facts else { throw damage() }
    lsn = lsn.next
    let body = try reader.take(end - reader.offset, "a write's body")
    if changesSystem {
      if systemReader == nil { systemReader = SystemReader() }
      try systemReader?.read(&reader)
    }
    return WriteView(kind, at: path.bytes, body: body, facts: facts)
  }

  /// Says what is wrong with the record, as it is found out by decoding it.
  private func damage() -> CodingError {
    var decoder = WriteReader(reader.bytes, firstLSN: .zero, baseTime: 0)
    do throws(CodingError) {
      // It comes to its end at the latest.
      while true { _ = try decoder.next() }
    } catch {
      return error
    }
  }
}
