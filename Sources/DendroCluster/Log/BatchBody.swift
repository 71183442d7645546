import DendroEngine
import DendroStorage

/// The records of a batch as a row of the shared log holds them.
///
/// | field | size |
/// | --- | --- |
/// | version, 1 | 1 |
/// | count of records | varint |
/// | for each record: count of writes, base time (zigzag), bytes of the payload | 3 varints |
/// | payloads one behind the other, as one LZ4 block or, where that is not shorter, as they are | to the end |
enum BatchBody {
  private static let version: UInt8 = 1
  /// As much as PostgreSQL holds in one value, and more than any batch has.
  static let payloadByteLimit: UInt64 = 1 << 30

  static func encode(_ records: [SharedRecord]) -> [UInt8] {
    var head = ByteWriter()
    head.uint8(version)
    head.varint(UInt64(records.count))
    for record in records {
      head.varint(UInt64(record.count))
      head.signedVarint(record.baseTime)
      head.varint(UInt64(record.payload.count))
    }
    let headCount = head.count
    let rawCount = records.reduce(0) { $0 + $1.payload.count }
    var raw = ByteWriter()
    // Most batches have one record, which lies in one piece already.
    let payload: UnsafeRawBufferPointer
    if records.count == 1 {
      payload = records[0].payload
    } else {
      for record in records { raw.bytes(record.payload) }
      payload = raw.bytes
    }
    let headBytes = head.bytes
    return [UInt8](unsafeUninitializedCapacity: headCount + Compression.bound(rawCount)) {
      target, count in
      guard let start = UnsafeMutableRawPointer(target.baseAddress) else { return }
      start.copyMemory(from: headBytes.baseAddress.unsafelyUnwrapped, byteCount: headCount)
      var stored = Compression.compress(payload, into: start + headCount)
      if stored == 0 || stored >= rawCount, let source = payload.baseAddress {
        (start + headCount).copyMemory(from: source, byteCount: rawCount)
        stored = rawCount
      }
      count = headCount + stored
    }
  }

  /// Calls `body` with the records of a batch, whose payloads are lent for the time of the call.
  ///
  /// - Parameters:
  ///   - bytes: of any origin.
  ///   - firstLSN: of the first record.
  /// - Throws: if the bytes are no batch.
  static func decode<R>(
    _ bytes: [UInt8], firstLSN: LogSequenceNumber,
    _ body: ([SharedRecord]) throws(ClusterError) -> R
  ) throws(ClusterError) -> R {
    let result = bytes.withUnsafeBytes { bytes -> Result<R, ClusterError> in
      Result { () throws(ClusterError) in
        try decode(bytes, firstLSN: firstLSN, body)
      }
    }
    return try result.get()
  }

  private struct Span {
    let count: Int
    let baseTime: Int64
    let byteCount: Int
  }

  private static func decode<R>(
    _ bytes: UnsafeRawBufferPointer, firstLSN: LogSequenceNumber,
    _ body: ([SharedRecord]) throws(ClusterError) -> R
  ) throws(ClusterError) -> R {
    var reader = ByteReader(bytes)
    var spans: [Span] = []
    var rawCount: UInt64 = 0
    do throws(ByteError) {
      guard try reader.uint8() == version else { throw .truncated(offset: 0) }
      let recordCount = try reader.varint()
      // Each has three bytes at least.
      guard recordCount <= UInt64(reader.remaining / 3) else { throw .truncated(offset: 1) }
      for _ in 0..<recordCount {
        let (count, time) = (try reader.varint(), try reader.signedVarint())
        let byteCount = try reader.varint()
        // A write takes a byte at least.
        guard count > 0, count <= byteCount, byteCount <= payloadByteLimit - rawCount else {
          throw .truncated(offset: reader.offset)
        }
        rawCount += byteCount
        spans.append(Span(count: Int(count), baseTime: time, byteCount: Int(byteCount)))
      }
    } catch {
      throw .damagedBatch(firstLSN, "\(error)")
    }
    let stored = UnsafeRawBufferPointer(rebasing: bytes[reader.offset...])
    if UInt64(stored.count) == rawCount { return try body(records(spans, firstLSN, stored)) }
    guard Compression.isPlausible(raw: rawCount, stored: UInt64(stored.count)) else {
      throw .damagedBatch(firstLSN, "\(stored.count) bytes cannot be \(rawCount)")
    }
    let raw = UnsafeMutableRawBufferPointer.allocate(byteCount: Int(rawCount), alignment: 8)
    defer { raw.deallocate() }
    guard let start = raw.baseAddress,
      Compression.decompress(
        stored, into: start, rawByteCount: raw.count,
        history: UnsafeRawBufferPointer(start: nil, count: 0))
    else { throw .damagedBatch(firstLSN, "its bytes cannot be decompressed") }
    return try body(records(spans, firstLSN, UnsafeRawBufferPointer(raw)))
  }

  private static func records(
    _ spans: [Span], _ firstLSN: LogSequenceNumber, _ payload: UnsafeRawBufferPointer
  ) -> [SharedRecord] {
    var lsn = firstLSN
    var start = 0
    return spans.map { span in
      defer {
        start += span.byteCount
        lsn = LogSequenceNumber(lsn.rawValue &+ UInt64(span.count))
      }
      return SharedRecord(
        firstLSN: lsn, count: span.count, baseTime: span.baseTime,
        payload: UnsafeRawBufferPointer(rebasing: payload[start..<(start + span.byteCount)]))
    }
  }
}
