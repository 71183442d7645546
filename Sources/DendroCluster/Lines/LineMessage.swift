import DendroEngine
import DendroStorage

/// What servers say to each other over a line.
///
/// A frame is the length of the rest (four bytes, little-endian), a byte for the kind, and what follows from that. Numbers are
/// varints; bytes and text stand behind their count.
enum LineMessage: Sendable {
  /// The follower says which epoch's leader it wants to hear.
  case hello(version: UInt64, namespace: String, client: [UInt8], epoch: Epoch)
  /// The leader of that epoch says that it is that: batches follow.
  case welcome(Epoch)
  /// A batch that PostgreSQL has.
  case batch(LoggedBatch)
  /// Writes that the follower passes on: a row of requests.
  case request(number: UInt64, count: Int64, body: [UInt8])
  /// What the leader says of some that are not in the log.
  case answers([Forwarding.Answer])
  /// The follower has so many answers of this line.
  case noted(UInt64)
  case ping
  case pong

  static let version: UInt64 = 1
  static let lengthByteCount = 4
  /// What is longer goes through PostgreSQL.
  static let byteCountMax = 32 << 20

  private enum Kind: UInt8 {
    case hello = 1
    case welcome, batch, request, answers, noted, ping, pong
  }

  /// With its length in front.
  var frame: [UInt8] {
    var writer = ByteWriter()
    writer.uint32(0)
    write(to: &writer)
    var frame = Array(writer.bytes)
    let length = UInt32(frame.count - Self.lengthByteCount)
    frame.withUnsafeMutableBytes { $0.storeBytes(of: length.littleEndian, as: UInt32.self) }
    return frame
  }

  private func write(to writer: inout ByteWriter) {
    func begin(_ kind: Kind) { writer.uint8(kind.rawValue) }
    switch self {
    case .hello(let version, let namespace, let client, let epoch):
      begin(.hello)
      writer.varint(version)
      writer.counted(Array(namespace.utf8))
      writer.counted(client)
      writer.epoch(epoch)
    case .welcome(let epoch):
      begin(.welcome)
      writer.epoch(epoch)
    case .batch(let batch):
      begin(.batch)
      writer.varint(batch.firstLSN.rawValue)
      writer.varint(batch.end.lsn.rawValue)
      writer.counted(batch.end.chain.bytes)
      writer.counted(batch.body)
    case .request(let number, let count, let body):
      begin(.request)
      writer.varint(number)
      writer.signedVarint(count)
      writer.counted(body)
    case .answers(let answers):
      begin(.answers)
      writer.varint(UInt64(answers.count))
      for answer in answers {
        let fields = answer.answer.fields
        writer.varint(answer.number)
        writer.varint(answer.lsn.rawValue)
        for number in [fields.kind, fields.first, fields.second] { writer.signedVarint(number) }
        writer.counted(fields.body)
      }
    case .noted(let count):
      begin(.noted)
      writer.varint(count)
    case .ping: begin(.ping)
    case .pong: begin(.pong)
    }
  }

  /// - Parameter bytes: behind the length.
  /// - Returns: nil unless they are a message.
  init?(_ bytes: ArraySlice<UInt8>) {
    let message = bytes.withUnsafeBytes { bytes -> LineMessage? in
      var reader = ByteReader(bytes)
      guard let message = try? Self.read(&reader), reader.isAtEnd else { return nil }
      return message
    }
    guard let message else { return nil }
    self = message
  }

  private static func read(_ reader: inout ByteReader) throws(ByteError) -> LineMessage? {
    guard let kind = Kind(rawValue: try reader.uint8()) else { return nil }
    switch kind {
    case .hello:
      let version = try reader.varint()
      let namespace = String(decoding: try reader.counted(), as: UTF8.self)
      return .hello(
        version: version, namespace: namespace, client: try reader.counted(),
        epoch: try reader.epoch())
    case .welcome: return .welcome(try reader.epoch())
    case .batch:
      let first = LogSequenceNumber(try reader.varint())
      let last = LogSequenceNumber(try reader.varint())
      guard let chain = LogChain(bytes: try reader.counted()) else { return nil }
      return .batch(
        LoggedBatch(
          firstLSN: first, end: LogPosition(lsn: last, chain: chain), body: try reader.counted()))
    case .request:
      let number = try reader.varint()
      let count = try reader.signedVarint()
      // No server has made so many writes.
      guard (1...(1 << 62)).contains(number), (1...(1 << 20)).contains(count) else { return nil }
      return .request(number: number, count: count, body: try reader.counted())
    case .answers:
      var answers: [Forwarding.Answer] = []
      for _ in 0..<(try reader.varint()) {
        let number = try reader.varint()
        let lsn = LogSequenceNumber(try reader.varint())
        let (kind, first) = (try reader.signedVarint(), try reader.signedVarint())
        let second = try reader.signedVarint()
        answers.append(
          Forwarding.Answer(
            number: number,
            answer: ForwardedAnswer(
              kind: kind, first: first, second: second, body: try reader.counted()), lsn: lsn))
      }
      return .answers(answers)
    case .noted: return .noted(try reader.varint())
    case .ping: return .ping
    case .pong: return .pong
    }
  }
}

extension ByteWriter {
  fileprivate mutating func epoch(_ epoch: Epoch) {
    signedVarint(epoch.number)
    counted(epoch.token)
  }

  /// Bytes behind their count.
  mutating func counted(_ bytes: [UInt8]) {
    varint(UInt64(bytes.count))
    bytes.withUnsafeBytes { self.bytes($0) }
  }
}

extension ByteReader {
  fileprivate mutating func epoch() throws(ByteError) -> Epoch {
    let number = try signedVarint()
    return Epoch(number: number, token: try counted())
  }

  /// Bytes that stand behind their count.
  mutating func counted() throws(ByteError) -> [UInt8] {
    let count = try varint()
    guard count <= UInt64(remaining) else { throw .truncated(offset: offset) }
    return Array(try bytes(Int(count)))
  }
}
