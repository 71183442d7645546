/// Puts the messages of a client together from the segments of its polls, which come in any order, and may come twice.
package struct PollPackets: Sendable {
  /// What a client has sent that none sends, after which nothing it sends makes sense.
  package struct Malformed: Error {}

  private var assembler: MessageAssembler
  /// The number of the segment that comes next.
  private var next = 0
  /// How many segments the message under way is short of.
  private var missingCount = 0
  /// Characters of Base64 that make no byte before the next segment is there.
  private var rest: [UInt8] = []
  /// Segments that came before their turn.
  private var early: [Int: PollSegment] = [:]
  private var earlyByteCount = 0

  /// A client has two polls under way, of less than 2 KB each.
  private static let earlyCountMax = 1024
  private static let earlyByteCountMax = 64 << 10

  /// - Parameter byteLimit: of one message.
  package init(byteLimit: Int) { assembler = MessageAssembler(byteLimit: byteLimit) }

  /// What has come of the message that is not whole; nil if there is none.
  package var byteCountUnderWay: Int? {
    early.isEmpty
      ? assembler.byteCountUnderWay : earlyByteCount + (assembler.byteCountUnderWay ?? 0)
  }

  /// What is kept of it.
  package var keptByteCount: Int { assembler.keptByteCount + rest.count + earlyByteCount }

  /// - Returns: the messages that are whole now, and those that are too large.
  package mutating func add(
    _ segment: PollSegment
  ) throws(Malformed) -> [MessageAssembler.Step] {
    guard segment.number >= next else { return [] }
    guard segment.number == next else {
      guard early[segment.number] == nil else { return [] }
      earlyByteCount += segment.data.utf8.count
      guard early.count < Self.earlyCountMax, earlyByteCount <= Self.earlyByteCountMax else {
        throw Malformed()
      }
      early[segment.number] = segment
      return []
    }
    var steps: [MessageAssembler.Step] = []
    var current = segment
    while true {
      if let step = try take(current) { steps.append(step) }
      guard let following = early.removeValue(forKey: next) else { return steps }
      earlyByteCount -= following.data.utf8.count
      current = following
    }
  }

  private mutating func take(
    _ segment: PollSegment
  ) throws(Malformed) -> MessageAssembler.Step? {
    next += 1
    if missingCount == 0 {
      missingCount = segment.count
      _ = assembler.add(Array("\(segment.count)".utf8))
    }
    missingCount -= 1
    var text = rest + segment.data.utf8
    // The padding is the web-safe one.
    for index in text.indices.suffix(2) where text[index] == UInt8(ascii: ".") {
      text[index] = UInt8(ascii: "=")
    }
    let count = missingCount == 0 ? text.count : text.count & ~3
    guard let frame = Base64.decode(text[..<count]) else { throw Malformed() }
    rest = Array(text[count...])
    switch assembler.add(frame) {
    case .waiting: return nil
    case .message(let message):
      guard String(validating: message, as: UTF8.self) != nil else { throw Malformed() }
      return .message(message)
    case .tooLarge(let number?): return .tooLarge(request: number)
    case .tooLarge(nil): throw Malformed()
    }
  }
}
