import DendroEngine
import DendroStorage
import DendroTestSupport
import DendroTree

/// Writes and their coding, held against each other.
enum WriteComparison {
  static func isSame(_ a: Write, _ b: Write) -> Bool {
    switch (a, b) {
    case (.set(let x, let node), .set(let y, let other)): x == y && node == other
    case (.remove(let x), .remove(let y)): x == y
    case (.increment(let x, let delta), .increment(let y, let other)):
      x == y && isSame(delta, other)
    case (.setPriority(let x, let priority), .setPriority(let y, let other)):
      x == y && priority == other
    case (.update(let x, let entries), .update(let y, let others)):
      x == y && entries.count == others.count
        && zip(entries, others).allSatisfy { $0.path == $1.path && isSame($0.action, $1.action) }
    default: false
    }
  }

  private static func isSame(_ a: Write.Entry.Action, _ b: Write.Entry.Action) -> Bool {
    switch (a, b) {
    case (.set(let node), .set(let other)): node == other
    case (.remove, .remove): true
    case (.increment(let delta), .increment(let other)): isSame(delta, other)
    case (.setPriority(let priority), .setPriority(let other)): priority == other
    default: false
    }
  }

  private static func isSame(_ a: Number, _ b: Number) -> Bool { a.scalar == b.scalar }

  /// The payload of a record that holds these writes.
  static func encode(_ writes: [(time: Int64, write: Write)], baseTime: Int64) -> [UInt8] {
    let buffer = PayloadBuffer()
    var path = Path.root
    var time = baseTime
    for logged in writes {
      WriteCoding.encodeHead(
        of: logged.write, timeDelta: UInt64(bitPattern: logged.time &- time), previousPath: path,
        into: buffer)
      WriteCoding.encodeBody(of: logged.write, into: buffer)
      path = logged.write.path
      time = logged.time
    }
    return buffer.withBytes { [UInt8]($0) }
  }

  /// As many writes as there are, at most `limit`; and whether nothing stands behind them.
  static func decode(
    _ payload: UnsafeRawBufferPointer, baseTime: Int64, limit: Int
  ) -> (writes: [LoggedWrite], isWhole: Bool) {
    var reader = WriteReader(payload, firstLSN: LogSequenceNumber(1), baseTime: baseTime)
    var writes: [LoggedWrite] = []
    while !reader.isAtEnd, writes.count < limit {
      guard let write = attempt({ () throws(CodingError) in try reader.next() }) else {
        return (writes, false)
      }
      writes.append(write)
    }
    return (writes, reader.isAtEnd)
  }

  /// Encodes the writes, decodes that, and compares; then encodes once more and compares the bytes.
  static func roundTrip(_ writes: [LoggedWrite], baseTime: Int64) throws {
    guard !writes.isEmpty else { return }
    let bytes = encode(writes.map { ($0.time, $0.write) }, baseTime: baseTime)
    let again = bytes.withUnsafeBytes { decode($0, baseTime: baseTime, limit: writes.count) }
    try require(
      again.isWhole && again.writes.count == writes.count,
      "\(writes.count) writes were encoded, \(again.writes.count) can be decoded")
    for (a, b) in zip(writes, again.writes) {
      try require(
        a.lsn.rawValue &- writes[0].lsn.rawValue == b.lsn.rawValue &- 1 && a.time == b.time
          && isSame(a.write, b.write),
        "\(a.write) is another write after encoding: \(b.write)")
    }
    try require(
      encode(again.writes.map { ($0.time, $0.write) }, baseTime: baseTime) == bytes,
      "the same writes have two encodings")
  }

  static func checkInvariants(_ root: Node, _ what: String) throws {
    do {
      try root.checkInvariants()
    } catch {
      throw FuzzFinding("\(what) breaks a rule: \(error)")
    }
  }
}
