import DendroProtocol
import DendroTree

/// A long message that is being sent: frames of it that are made, and the rest.
struct OutgoingMessage: Sendable {
  private var frames = Queue<[UInt8]>()
  private var framesByteCount = 0
  private var rest: MessageFrames
  /// Whether it has more than 64 KiB of text, as far as that was made.
  private(set) var isLong: Bool
  private static let shortByteCount = 64 << 10

  /// - Parameter rest: all frames of the message. Its beginning may have been made.
  init(_ rest: MessageFrames) {
    self.rest = rest
    isLong = rest.isLonger(than: Self.shortByteCount)
  }

  /// What is kept until all is sent.
  var byteCount: Int { framesByteCount + rest.byteCount }

  /// Whether a frame is made.
  var hasFrames: Bool { !frames.isEmpty }

  /// Whether all was sent.
  var isAtEnd: Bool { frames.isEmpty && rest.isAtEnd }

  /// Takes out the next frame; nil if none is made.
  mutating func popFirst() -> [UInt8]? {
    guard let frame = frames.popFirst() else { return nil }
    framesByteCount -= frame.count
    return frame
  }

  /// Makes the next frames.
  ///
  /// - Parameter limit: so many bytes of text are made or counted, and what the last frame has beyond that.
  mutating func make(byteCount limit: Int) {
    var byteCount = 0
    while byteCount < limit {
      switch rest.next() {
      case .frame(let frame):
        frames.append(frame)
        framesByteCount += frame.count
        byteCount += frame.count
      case .counting: byteCount += MessageFrames.partByteCount
      case .end: return
      }
      isLong = isLong || rest.isLonger(than: Self.shortByteCount)
    }
  }
}
