import DendroStorage
import DendroTestSupport
import Testing

@testable import DendroCluster
@testable import DendroEngine

@Suite("The body of a batch in the shared log")
struct BatchBodyTests {
  /// A record, as values.
  struct Plain: Hashable {
    var firstLSN: LogSequenceNumber
    var count: Int
    var baseTime: Int64
    var payload: [UInt8]
  }

  private func encode(_ records: [Plain]) -> [UInt8] {
    // One memory for all payloads, which the records refer to.
    let bytes = records.flatMap(\.payload)
    return bytes.withUnsafeBytes { bytes in
      var start = 0
      return BatchBody.encode(
        records.map { record in
          defer { start += record.payload.count }
          return SharedRecord(
            firstLSN: record.firstLSN, count: record.count, baseTime: record.baseTime,
            payload: UnsafeRawBufferPointer(
              rebasing: bytes[start..<(start + record.payload.count)]))
        })
    }
  }

  private func decode(_ body: [UInt8], _ first: LogSequenceNumber) throws(ClusterError) -> [Plain] {
    try BatchBody.decode(body, firstLSN: first) { (records) throws(ClusterError) in
      records.map {
        Plain(
          firstLSN: $0.firstLSN, count: $0.count, baseTime: $0.baseTime,
          payload: Array($0.payload))
      }
    }
  }

  private func random(_ seed: UInt64) -> [Plain] {
    var random = SeededGenerator(seed: seed)
    var lsn: UInt64 = 1 + random.next() % 1000
    return (0..<1 + random.below(5)).map { _ in
      let isPlain = random.oneIn(2)
      let payload = (0..<1 + random.below(3000)).map { index in
        isPlain ? UInt8(index / 300) : UInt8(truncatingIfNeeded: random.next())
      }
      let count = 1 + random.below(payload.count)
      defer { lsn += UInt64(count) }
      return Plain(
        firstLSN: LogSequenceNumber(lsn), count: count,
        baseTime: Int64(bitPattern: random.next() >> 20) * (random.oneIn(2) ? 1 : -1),
        payload: payload)
    }
  }

  @Test("what was encoded is decoded again", arguments: UInt64(1)...40)
  func roundTrip(seed: UInt64) throws {
    let records = random(seed)
    #expect(try decode(encode(records), records[0].firstLSN) == records)
  }

  @Test("repetitions are compressed, and what cannot be compressed takes a few bytes more")
  func size() {
    let first = LogSequenceNumber(1)
    let plain = Plain(
      firstLSN: first, count: 1, baseTime: 0, payload: Array(repeating: 7, count: 10_000))
    #expect(encode([plain]).count < 200)
    var random = SeededGenerator(seed: 1)
    let noise = Plain(
      firstLSN: first, count: 1, baseTime: 0,
      payload: (0..<10_000).map { _ in UInt8(truncatingIfNeeded: random.next()) })
    #expect(encode([noise]).count <= 10_020)
  }

  @Test(
    "a body that is cut short or changed at any place is refused, or gives records in their bounds")
  func damaged() {
    for seed in UInt64(1)...4 {
      let records = Array(random(seed).prefix(2)).map { record in
        var record = record
        record.payload = Array(record.payload.prefix(120))
        record.count = min(record.count, record.payload.count)
        return record
      }
      let body = encode(records)
      for end in 0..<body.count {
        #expect(throws: ClusterError.self) { try decode(Array(body[..<end]), .zero) }
      }
      for place in 0..<body.count {
        for bit in 0..<8 {
          var changed = body
          changed[place] ^= 1 << UInt8(bit)
          // The chain shows what is not refused here.
          let found = try? decode(changed, .zero)
          #expect(found.map { $0.allSatisfy { $0.count <= $0.payload.count } } ?? true)
        }
      }
    }
  }

  @Test("sizes that no batch has are refused before memory is taken for them")
  func hugeSizes() {
    for size in [UInt64(1) << 40, .max, BatchBody.payloadByteLimit + 1] {
      var writer = ByteWriter()
      writer.uint8(1)
      writer.varint(1)
      writer.varint(1)
      writer.signedVarint(0)
      writer.varint(size)
      writer.bytes(UnsafeRawBufferPointer(start: nil, count: 0))
      let body = Array(writer.bytes)
      #expect(throws: ClusterError.self) { try decode(body, .zero) }
    }
  }
}
