import CDendroMicroHTTPD
import DendroProtocol
import Synchronization

/// The body of an answer that is made while it is sent. Its parts are made elsewhere, while the connection is suspended: its
/// thread serves other clients as well.
final class ResponseBody: Sendable {
  /// An answer up to this size is made at once and sent with its length.
  static let wholeByteLimit = 256 << 10
  private static let partByteCount = 64 << 10

  private let context: HTTPContext
  private let connection: SuspendedConnection
  private let state: Mutex<State>

  private struct State {
    var part: [UInt8]
    /// The bytes of the part that were sent.
    var offset = 0
    /// Nil while a part of it is made.
    var rest: AnswerText?
  }

  private init(
    _ part: [UInt8], _ rest: AnswerText, _ connection: OpaquePointer, _ context: HTTPContext
  ) {
    state = Mutex(State(part: part, rest: rest))
    self.connection = SuspendedConnection(connection, context)
    self.context = context
  }

  static func response(
    _ answer: RESTAnswer, on connection: OpaquePointer, _ context: HTTPContext
  ) -> OpaquePointer? {
    var rest = answer.body
    var first = rest.next(byteCount: wholeByteLimit)
    if rest.isAtEnd {
      return first.withUnsafeMutableBytes {
        MHD_create_response_from_buffer($0.count, $0.baseAddress, dendro_copied)
      }
    }
    let body = Unmanaged.passRetained(ResponseBody(first, rest, connection, context))
    return MHD_create_response_from_callback(
      dendro_size_unknown, partByteCount,
      { body, _, buffer, capacity in
        guard let body, let buffer else { return dendro_end_of_stream }
        return Unmanaged<ResponseBody>.fromOpaque(body).takeUnretainedValue().read(
          UnsafeMutableRawBufferPointer(start: buffer, count: capacity))
      }, body.toOpaque(),
      { body in
        if let body { Unmanaged<ResponseBody>.fromOpaque(body).release() }
      })
  }

  /// - Returns: the number of bytes; 0 if none is made yet, and the connection is suspended then.
  private func read(_ buffer: UnsafeMutableRawBufferPointer) -> Int {
    let (count, unmade) = state.withLock { state -> (Int, AnswerText?) in
      if state.offset == state.part.count {
        guard let rest = state.rest else {
          connection.suspend()
          return (0, nil)
        }
        if rest.isAtEnd { return (Int(dendro_end_of_stream), nil) }
        state.rest = nil
        connection.suspend()
        return (0, rest)
      }
      let count = min(buffer.count, state.part.count - state.offset)
      state.part.withUnsafeBytes {
        buffer.copyMemory(
          from: UnsafeRawBufferPointer(rebasing: $0[state.offset..<state.offset + count]))
      }
      state.offset += count
      return (count, nil)
    }
    if let unmade {
      context.parts.async(for: self) { [self] in make(unmade) }
    } else {
      context.sentPartCount.wrappingAdd(1, ordering: .relaxed)
    }
    return count
  }

  private func make(_ unmade: AnswerText) {
    var rest = unmade
    let part = rest.next(byteCount: Self.partByteCount)
    state.withLock { state in
      state.part = part
      state.offset = 0
      state.rest = rest
      connection.resume()
    }
  }
}
