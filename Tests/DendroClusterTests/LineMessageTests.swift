import DendroEngine
import DendroStorage
import DendroTestSupport
import Testing

@testable import DendroCluster

@Suite("What servers say to each other")
struct LineMessageTests {
  private static let chain = LogChain(
    of: ClusterID(bytes: Array(0..<16)).unsafelyUnwrapped, "shop")

  private static let messages: [LineMessage] = [
    .hello(
      version: 1, namespace: "shop", client: Array(0..<24), epoch: Epoch(number: 7, token: [1, 2])),
    .welcome(Epoch(number: -1, token: [])),
    .batch(
      LoggedBatch(
        firstLSN: LogSequenceNumber(8),
        end: LogPosition(lsn: LogSequenceNumber(.max), chain: chain), body: [1, 2, 3])),
    .request(number: 1 << 62, count: 3, body: Array(repeating: 7, count: 300)),
    .answers([
      Forwarding.Answer(number: 4, answer: .nothing, lsn: LogSequenceNumber(5)),
      Forwarding.Answer(
        number: 5, answer: .memoryLimit(bytes: -1, limit: .max), lsn: LogSequenceNumber(6)),
      Forwarding.Answer(number: 6, answer: .refused("no"), lsn: LogSequenceNumber(7)),
      Forwarding.Answer(number: 7, answer: .answered([9]), lsn: LogSequenceNumber(8)),
    ]),
    .noted(300), .ping, .pong,
  ]

  @Test("each message is read as it was written, and no shorter one is")
  func roundTrip() throws {
    for message in Self.messages {
      let frame = message.frame
      let length = frame.withUnsafeBytes {
        Int(UInt32(littleEndian: $0.load(as: UInt32.self)))
      }
      #expect(length == frame.count - LineMessage.lengthByteCount)
      let bytes = frame[LineMessage.lengthByteCount...]
      let read = try #require(LineMessage(bytes))
      #expect(read.frame == frame)
      for count in 0..<bytes.count {
        #expect(LineMessage(bytes.prefix(count)) == nil, "\(message), \(count) bytes")
      }
      #expect(LineMessage(bytes + [0]) == nil)
    }
  }

  @Test("what no server sends is no message, and traps nobody")
  func nonsense() {
    for seed in 0..<2_000 as Range<UInt64> {
      var random = SeededGenerator(seed: seed)
      var bytes = Self.messages[random.below(Self.messages.count)].frame
      bytes.removeFirst(LineMessage.lengthByteCount)
      for _ in 0...random.below(4) { bytes[random.below(bytes.count)] = UInt8(random.below(256)) }
      if let read = LineMessage(bytes[...]) {
        #expect(LineMessage(read.frame[LineMessage.lengthByteCount...])?.frame == read.frame)
      }
    }
    for bytes in [[], [0], [9], [1, 0xFF], [255, 1, 1]] as [[UInt8]] {
      #expect(LineMessage(bytes[...]) == nil)
    }
  }
}
