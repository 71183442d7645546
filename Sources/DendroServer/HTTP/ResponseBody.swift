import CDendroMicroHTTPD
import DendroProtocol
import Synchronization

/// The body of an answer that is made while it is sent.
///
/// Used by the connection's thread only.
final class ResponseBody {
  /// An answer up to this size is made at once and sent with its length.
  private static let wholeByteLimit = 256 << 10

  private var part: [UInt8]
  /// The bytes of the part that were sent.
  private var offset = 0
  private var rest: AnswerText
  private let context: HTTPContext

  private init(_ part: [UInt8], _ rest: AnswerText, _ context: HTTPContext) {
    self.part = part
    self.rest = rest
    self.context = context
  }

  static func response(_ answer: RESTAnswer, _ context: HTTPContext) -> OpaquePointer? {
    var rest = answer.body
    var first = rest.next(byteCount: wholeByteLimit)
    if rest.isAtEnd {
      return first.withUnsafeMutableBytes {
        MHD_create_response_from_buffer($0.count, $0.baseAddress, dendro_copied)
      }
    }
    let body = Unmanaged.passRetained(ResponseBody(first, rest, context))
    return MHD_create_response_from_callback(
      dendro_size_unknown, 64 << 10,
      { body, _, buffer, capacity in
        guard let body, let buffer else { return dendro_end_of_stream }
        return Unmanaged<ResponseBody>.fromOpaque(body).takeUnretainedValue().read(
          UnsafeMutableRawBufferPointer(start: buffer, count: capacity))
      }, body.toOpaque(),
      { body in
        if let body { Unmanaged<ResponseBody>.fromOpaque(body).release() }
      })
  }

  private func read(_ buffer: UnsafeMutableRawBufferPointer) -> Int {
    context.sentPartCount.wrappingAdd(1, ordering: .relaxed)
    if offset == part.count {
      guard !rest.isAtEnd else { return Int(dendro_end_of_stream) }
      part = rest.next(byteCount: 64 << 10)
      offset = 0
      if part.isEmpty { return Int(dendro_end_of_stream) }
    }
    let count = min(buffer.count, part.count - offset)
    part.withUnsafeBytes {
      buffer.copyMemory(from: UnsafeRawBufferPointer(rebasing: $0[offset..<offset + count]))
    }
    offset += count
    return count
  }
}
