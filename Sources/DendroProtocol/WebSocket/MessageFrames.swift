/// Puts messages together from the frames of a client: a message is one frame, or a number of frames that a frame
/// before them announces.
package struct MessageAssembler: Sendable {
  /// What a frame was.
  package enum Step: Sendable, Equatable {
    /// A part of a message, or a keep-alive.
    case waiting
    case message([UInt8])
    /// The message is over the limit, and was passed over to its end: what follows is another one. The number is
    /// that of the request. Nil if the message does not begin as the JavaScript client's do, or is
    /// `passedFactor` times over the limit: then its rest still comes.
    case tooLarge(request: Int64?)
  }

  private let byteLimit: Int
  private var parts: [UInt8] = []
  private var missingCount = 0
  /// The request of a message that is over the limit, whose frames are passed over.
  private var refused: Int64?
  private var passedByteCount = 0
  /// How many times the limit a message may have for its request to be answered.
  package static let passedFactor = 16

  /// - Parameter byteLimit: of one message.
  package init(byteLimit: Int) { self.byteLimit = byteLimit }

  /// What has come of the message whose frames are not all there; nil if there is none.
  package var byteCountUnderWay: Int? {
    missingCount == 0 ? nil : refused == nil ? parts.count : passedByteCount
  }

  /// What is kept of it.
  package var keptByteCount: Int { parts.count }

  package mutating func add(_ frame: [UInt8]) -> Step {
    if missingCount == 0 {
      guard let count = Self.count(frame) else {
        return frame.count > byteLimit
          ? .tooLarge(request: Self.request(frame)) : .message(frame)
      }
      missingCount = count
      return .waiting
    }
    missingCount -= 1
    if refused == nil, frame.count <= byteLimit - parts.count {
      parts += frame
    } else if let number = pass(frame) {
      refused = number
    } else {
      refused = nil
      missingCount = 0
      return .tooLarge(request: nil)
    }
    guard missingCount == 0 else { return .waiting }
    if let number = refused {
      refused = nil
      return .tooLarge(request: number)
    }
    var message: [UInt8] = []
    swap(&message, &parts)
    return .message(message)
  }

  /// Passes over a frame of a message that is over the limit.
  ///
  /// - Returns: the number of its request; nil if it is not known, or too much was passed over.
  private mutating func pass(_ frame: [UInt8]) -> Int64? {
    if refused == nil { passedByteCount = parts.count }
    passedByteCount += frame.count
    let number = refused ?? Self.request(parts.isEmpty ? frame : parts)
    parts = []
    return passedByteCount / Self.passedFactor > byteLimit ? nil : number
  }

  /// The number of the request with which a message begins.
  private static func request(_ message: [UInt8]) -> Int64? {
    let start = Array("{\"t\":\"d\",\"d\":{\"r\":".utf8)
    guard message.starts(with: start) else { return nil }
    let digits = message.dropFirst(start.count).prefix(19).prefix { byte in
      (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte)
    }
    return Int64(String(decoding: digits, as: UTF8.self))
  }

  /// The number that a frame of at most six characters is; 0 is a keep-alive.
  private static func count(_ frame: [UInt8]) -> Int? {
    guard frame.count <= 6 else { return nil }
    return Int(String(decoding: frame, as: UTF8.self)).flatMap { $0 >= 0 ? $0 : nil }
  }
}

/// The frames of one message to a client, made while they are sent: each has as many UTF-16 code units as every client
/// takes.
///
/// Several frames follow one that says how many they are. So a text that is made while it is sent is made twice if it is
/// long: at first only to count its frames.
package struct MessageFrames: Sendable {
  /// The most UTF-16 code units of one frame.
  package static let unitLimit = 16_384

  package enum Step: Sendable {
    case frame([UInt8])
    /// Some of the text was made, and no frame.
    case counting
    case end
  }

  private enum Phase: Sendable {
    /// The beginning of the text is made.
    case begin
    case counting(Counting)
    case sending
    case end
  }

  private struct Counting: Sendable {
    /// What is not in `part` yet.
    var text: AnswerText
    var part: [UInt8]
    var offset = 0
    var units = 0
    var frameCount = 1
  }

  /// What is not in `part` yet.
  private var text: AnswerText
  private var part: [UInt8] = []
  private var offset = 0
  private var phase = Phase.begin

  /// A shorter text is made once.
  private static let keptByteCount = 256 << 10
  /// So much is made or counted in one step.
  package static let partByteCount = 16 << 10

  package init(_ message: AnswerText) { text = message }

  /// - Parameter message: UTF-8.
  /// - Returns: the message, or the number of its parts and then these.
  package static func split(_ message: [UInt8]) -> [[UInt8]] {
    var text = AnswerText()
    text.append(bytes: message)
    var frames = MessageFrames(text)
    var result: [[UInt8]] = []
    while true {
      switch frames.next() {
      case .frame(let frame): result.append(frame)
      case .counting: break
      case .end: return result
      }
    }
  }

  /// Whether there is no further frame.
  package var isAtEnd: Bool { if case .end = phase { true } else { false } }

  /// Whether more than so many bytes of text are made and not given out, or as many and there is more.
  package func isLonger(than byteCount: Int) -> Bool {
    let madeByteCount = part.count - offset
    return madeByteCount > byteCount || madeByteCount == byteCount && !text.isAtEnd
  }

  /// What is kept until all is sent.
  package var byteCount: Int { text.byteCount + part.count - offset }

  /// Makes the next frame, or a part of the text.
  ///
  /// - Complexity: O(16 KiB).
  package mutating func next() -> Step {
    switch phase {
    case .begin:
      let next = text.next(byteCount: Self.partByteCount)
      part = part.isEmpty ? next : part + next
      // A message has at most as many units as bytes.
      if part.count <= Self.unitLimit, text.isAtEnd { return last() }
      if part.count >= Self.keptByteCount || text.isAtEnd {
        phase = .counting(Counting(text: text, part: part))
      }
      return .counting
    case .counting(var counting):
      phase = .end  // Otherwise the text would be copied.
      guard Self.count(&counting) else {
        phase = .counting(counting)
        return .counting
      }
      if counting.frameCount == 1 { return last() }
      phase = .sending
      return .frame(Array("\(counting.frameCount)".utf8))
    case .sending: return .frame(frame())
    case .end: return .end
    }
  }

  /// All that is left as one frame.
  private mutating func last() -> Step {
    phase = .end
    defer { part = [] }
    return .frame(part)
  }

  /// - Returns: whether the count is complete.
  private static func count(_ counting: inout Counting) -> Bool {
    let end = min(counting.part.count, counting.offset + partByteCount)
    while let next = beginning(in: counting.part, counting.offset, end, &counting.units) {
      counting.frameCount += 1
      counting.offset = next
    }
    counting.offset = end
    if end < counting.part.count { return false }
    if counting.text.isAtEnd { return true }
    counting.part = counting.text.next(byteCount: partByteCount)
    counting.offset = 0
    return false
  }

  private mutating func frame() -> [UInt8] {
    var frame: [UInt8] = []
    var units = 0
    while true {
      let next = Self.beginning(in: part, offset, part.count, &units)
      frame += part[offset..<(next ?? part.count)]
      offset = next ?? part.count
      if next != nil { return frame }
      if text.isAtEnd {
        phase = .end
        part = []
        offset = 0
        return frame
      }
      part = text.next(byteCount: Self.partByteCount)
      offset = 0
    }
  }

  /// Where the next frame begins; nil if that is not in the range.
  ///
  /// - Parameter units: of the frame so far; 0 where the next one begins.
  private static func beginning(
    in bytes: [UInt8], _ start: Int, _ end: Int, _ units: inout Int
  ) -> Int? {
    bytes.withUnsafeBufferPointer { bytes in
      for index in start..<end where bytes[index] & 0xC0 != 0x80 {
        let own = bytes[index] >= 0xF0 ? 2 : 1
        if units + own > unitLimit {
          units = 0
          return index
        }
        units += own
      }
      return nil
    }
  }
}
