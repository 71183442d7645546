import CDendroLZ4
import DendroStorage

/// Puts right checksums over bytes that were changed, so that what stands behind them is reached. It
/// follows the formats' articles and not the code that is fuzzed, and leaves alone what it cannot follow.
enum Mending {
  /// A record's place in a segment, as its own lengths say.
  struct Record {
    var kind: UInt8
    /// Of the previous checksum; payload checksum and header checksum stand behind it.
    var trailer: Int
    var payload: Range<Int>
    var start: Int
    /// Of a short record, which has shorter checksums.
    var sharedByteCount: Int?

    /// The three checksums together.
    var checksums: Range<Int> { trailer..<trailer + (sharedByteCount == nil ? 16 : 10) }
  }

  private static let headerByteCount = 64

  static func checksum(_ bytes: some Collection<UInt8>, seed: UInt64) -> UInt64 {
    Array(bytes).withUnsafeBytes { Checksum.xxh3($0, seed: seed) }
  }

  private static func short(_ bytes: some Collection<UInt8>, seed: UInt64) -> UInt32 {
    UInt32(truncatingIfNeeded: checksum(bytes, seed: seed))
  }

  // MARK: Log

  /// Mends the segments of one log: checksums, and what one file says of another.
  ///
  /// - `chained`: the first LSNs are those of the names, the ids those of the first segment, and each
  ///   segment and record repeats the checksum before it.
  static func log(_ segments: inout [(lsn: UInt64, bytes: [UInt8])], chained: Bool) {
    var previous: UInt32 = 0
    for index in segments.indices {
      if chained {
        segments[index].bytes.set(segments[index].lsn, at: 40)
        if index > 0, segments[0].bytes.count >= 32, segments[index].bytes.count >= 32 {
          segments[index].bytes.replaceSubrange(16..<32, with: segments[0].bytes[16..<32])
        }
        segments[index].bytes.set(previous, at: 56)
      }
      header(&segments[index].bytes)
      var successor: UInt32?
      if chained, index + 1 < segments.count {
        var next = segments[index + 1]
        next.bytes.set(next.lsn, at: 40)
        if next.bytes.count >= 32, segments[0].bytes.count >= 32 {
          next.bytes.replaceSubrange(16..<32, with: segments[0].bytes[16..<32])
        }
        // If it will be known, it is mended with the checksum before the seal.
        successor = nil
        previous = records(&segments[index].bytes, chained: true) { last in
          next.bytes.set(last, at: 56)
          header(&next.bytes)
          successor = next.bytes.integer(at: 60)
          return successor
        }
      } else {
        previous = records(&segments[index].bytes, chained: chained) { _ in nil }
      }
    }
  }

  private static func header(_ bytes: inout [UInt8]) {
    guard bytes.count >= headerByteCount else { return }
    bytes.set(short(bytes[..<60], seed: 0), at: 60)
  }

  /// - `successor`: the header checksum of the next segment, given that of the last record.
  /// - Returns: the checksum of the last record before the seal.
  private static func records(
    _ bytes: inout [UInt8], chained: Bool, successor: (UInt32) -> UInt32?
  ) -> UInt32 {
    guard let salt = bytes.integer(at: 32, as: UInt64.self),
      var last = bytes.integer(at: 60, as: UInt32.self)
    else { return 0 }
    var history: [UInt8] = []
    var lastShort: [UInt8] = []
    var offset = headerByteCount
    while let record = record(bytes, at: offset) {
      if let shared = record.sharedByteCount {
        lastShort = Array(lastShort.prefix(shared) + bytes[record.payload])
        if chained { bytes.set(UInt16(truncatingIfNeeded: last), at: record.trailer) }
        bytes.set(short(lastShort, seed: salt), at: record.trailer + 2)
        last = short(
          bytes[offset..<record.trailer + 6], seed: salt &+ UInt64(offset))
        bytes.set(last, at: record.trailer + 6)
        offset = record.payload.upperBound
        continue
      }
      let flags = bytes[offset + 2]
      if record.kind == 2, let checksum = successor(last), record.payload.count == 4 {
        bytes.set(checksum, at: record.payload.lowerBound)
      }
      if flags & 0x20 != 0 {
        history = []
        lastShort = []
      }
      var raw: [UInt8]? = Array(bytes[record.payload])
      if flags & 0x10 != 0 {
        raw = decompressed(bytes[record.payload], rawLength(bytes, at: offset), history)
      }
      if chained { bytes.set(last, at: record.trailer) }
      if let raw {
        bytes.set(checksum(raw, seed: salt), at: record.trailer + 4)
        history = (history + raw).suffix(64 << 10)
      }
      let end = record.trailer + 12
      let sum = short(bytes[offset..<end], seed: salt &+ UInt64(offset))
      bytes.set(sum, at: end)
      if record.kind != 2 { last = sum }
      offset = record.payload.upperBound
    }
    return last
  }

  /// The records of a segment, as far as their lengths lead.
  static func records(in bytes: [UInt8]) -> [Record] {
    var records: [Record] = []
    while let record = record(bytes, at: records.last?.payload.upperBound ?? headerByteCount) {
      records.append(record)
    }
    return records
  }

  private static func record(_ bytes: [UInt8], at start: Int) -> Record? {
    if start + 3 <= bytes.count, bytes[start] == 0xF6 { return shortRecord(bytes, at: start) }
    guard start + 3 <= bytes.count, bytes[start] == 0xF5, bytes[start + 1] == 0x52 else {
      return nil
    }
    var offset = start + 3
    guard let stored = bytes.varint(at: &offset) else { return nil }
    for _ in 0..<(bytes[start + 2] & 0x10 != 0 ? 5 : 4) {
      guard bytes.varint(at: &offset) != nil else { return nil }
    }
    let payload = offset + 16
    guard payload <= bytes.count, stored <= UInt64(bytes.count - payload) else { return nil }
    return Record(
      kind: bytes[start + 2] & 0x0F, trailer: offset, payload: payload..<payload + Int(stored),
      start: start)
  }

  private static func shortRecord(_ bytes: [UInt8], at start: Int) -> Record? {
    var offset = start + 3
    for _ in 0..<2 {
      guard bytes.varint(at: &offset) != nil else { return nil }
    }
    let payload = offset + 10
    let stored = Int(bytes[start + 2])
    guard payload <= bytes.count, stored <= bytes.count - payload else { return nil }
    return Record(
      kind: 1, trailer: offset, payload: payload..<payload + stored, start: start,
      sharedByteCount: Int(bytes[start + 1]))
  }

  private static func rawLength(_ bytes: [UInt8], at start: Int) -> UInt64 {
    var offset = start + 3
    _ = bytes.varint(at: &offset)
    return bytes.varint(at: &offset) ?? 0
  }

  private static func decompressed(
    _ block: ArraySlice<UInt8>, _ rawByteCount: UInt64, _ history: [UInt8]
  ) -> [UInt8]? {
    guard rawByteCount <= 1 << 20 else { return nil }
    let block = Array(block)
    var count: Int32 = 0
    let raw = [UInt8](unsafeUninitializedCapacity: Int(rawByteCount) + 1) { target, filled in
      count = block.withUnsafeBytes { block in
        history.withUnsafeBytes { history in
          LZ4_decompress_safe_usingDict(
            block.baseAddress?.assumingMemoryBound(to: CChar.self),
            UnsafeMutableRawPointer(target.baseAddress)?.assumingMemoryBound(to: CChar.self),
            Int32(block.count), Int32(rawByteCount),
            history.baseAddress?.assumingMemoryBound(to: CChar.self), Int32(history.count))
        }
      }
      filled = max(0, Int(count))
    }
    return count == Int32(rawByteCount) ? raw : nil
  }

  // MARK: Checkpoints

  /// Repairs a checkpoint: checksums, and the offsets in the footer.
  static func checkpoint(_ bytes: inout [UInt8]) {
    header(&bytes)
    guard let salt = bytes.integer(at: 32, as: UInt64.self), bytes.count >= 160 else { return }
    let footer = bytes.count - 64
    var offset = headerByteCount
    while offset + 32 <= footer, let magic = bytes.integer(at: offset, as: UInt32.self),
      let stored = bytes.integer(at: offset + 8, as: UInt32.self),
      let rawByteCount = bytes.integer(at: offset + 12, as: UInt32.self)
    {
      let isIndex = magic == 0x7864_49F5
      guard isIndex || magic == 0x6B68_43F5, Int(stored) <= footer - offset - 32 else { break }
      let payload = offset + 32..<offset + 32 + Int(stored)
      var raw: [UInt8]? = Array(bytes[payload])
      if bytes[offset + 4] & 1 != 0 {
        raw = decompressed(bytes[payload], UInt64(rawByteCount), [])
      }
      if let raw { bytes.set(checksum(raw, seed: salt), at: offset + 20) }
      bytes.set(
        short(bytes[offset..<offset + 28], seed: salt &+ UInt64(offset)), at: offset + 28)
      if isIndex { bytes.set(UInt64(offset), at: footer + 8) }
      offset = payload.upperBound
    }
    bytes.set(checksum(bytes[footer..<footer + 56], seed: salt), at: footer + 56)
  }
}
