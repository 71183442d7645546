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

/// Splits a message into frames that every client takes.
package enum MessageFrames {
  /// The most UTF-16 code units of one frame.
  package static let unitLimit = 16_384

  /// - Parameter message: UTF-8.
  /// - Returns: the message, or the number of its parts and then these.
  package static func split(_ message: [UInt8]) -> [[UInt8]] {
    // A message has at most as many units as bytes.
    if message.count <= unitLimit { return [message] }
    var parts: [[UInt8]] = []
    var start = 0
    var units = 0
    for (index, byte) in message.enumerated() where byte & 0xC0 != 0x80 {
      let own = byte >= 0xF0 ? 2 : 1
      if units + own > unitLimit {
        parts.append(Array(message[start..<index]))
        start = index
        units = 0
      }
      units += own
    }
    parts.append(Array(message[start...]))
    return parts.count == 1 ? parts : [Array("\(parts.count)".utf8)] + parts
  }
}
