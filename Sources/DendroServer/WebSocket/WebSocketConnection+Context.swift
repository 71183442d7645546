import CDendroWSLay
import DendroPlatform

// The connection's context in libwslay, which reads and writes the socket through callbacks.

extension WebSocketConnection {
  func opened() -> wslay_event_context_ptr? {
    if let context { return context }
    var callbacks = wslay_event_callbacks()
    callbacks.recv_callback = { context, buffer, count, _, connection in
      guard let buffer, let connection else { return -1 }
      return WebSocketConnection.of(connection).receive(context, buffer, count)
    }
    callbacks.send_callback = { context, data, count, _, connection in
      guard let data, let connection else { return -1 }
      return WebSocketConnection.of(connection).transmit(context, data, count)
    }
    callbacks.on_msg_recv_callback = { context, message, connection in
      guard let message = message?.pointee, let connection else { return }
      WebSocketConnection.of(connection).take(context, message)
    }
    callbacks.on_frame_recv_start_callback = { context, frame, connection in
      guard let frame = frame?.pointee, let connection else { return }
      WebSocketConnection.of(connection).beginFrame(context, frame)
    }
    callbacks.on_frame_recv_chunk_callback = { _, part, connection in
      guard let part = part?.pointee, let connection else { return }
      WebSocketConnection.of(connection).takePart(part)
    }
    // The connection frees the context before it is freed itself.
    let own = Unmanaged.passUnretained(self).toOpaque()
    // A local variable: to pass the property itself would make each reading of it a checked access.
    var new: wslay_event_context_ptr?
    guard wslay_event_context_server_init(&new, &callbacks, own) == 0, let new else { return nil }
    context = new
    wslay_event_config_set_no_buffering(new, 1)
    // Of a frame. That of a message is checked here.
    wslay_event_config_set_max_recv_msg_length(new, UInt64(limits.messageBytes))
    return new
  }

  private static func of(_ pointer: UnsafeMutableRawPointer) -> WebSocketConnection {
    Unmanaged<WebSocketConnection>.fromOpaque(pointer).takeUnretainedValue()
  }

  private func receive(
    _ context: wslay_event_context_ptr?, _ buffer: UnsafeMutablePointer<UInt8>, _ count: Int
  ) -> Int {
    if !early.isEmpty {
      let part = min(count, early.count)
      early.withUnsafeBytes {
        UnsafeMutableRawPointer(buffer).copyMemory(
          from: $0.baseAddress.unsafelyUnwrapped, byteCount: part)
      }
      early = Array(early.dropFirst(part))
      return part
    }
    // A client that sends without a pause is not the only one.
    if readCount >= Self.readByteLimit { wantsToRead = true }
    let mayRead = !wantsToRead && !isDrained && mayReceive
    let result = mayRead ? recv(descriptor, buffer, count, 0) : -1
    if result > 0 {
      readCount += result
      isDrained = result < count
      return result
    }
    let wouldBlock = !mayRead || result < 0 && (errno == EAGAIN || errno == EINTR)
    wslay_event_set_error(
      context,
      wouldBlock ? Int32(WSLAY_ERR_WOULDBLOCK.rawValue) : Int32(WSLAY_ERR_CALLBACK_FAILURE.rawValue)
    )
    return -1
  }

  private func transmit(
    _ context: wslay_event_context_ptr?, _ data: UnsafePointer<UInt8>, _ count: Int
  ) -> Int {
    let bytes = UnsafeBufferPointer(start: data, count: count)
    if unsent.append(bytes, to: descriptor) { return count }
    wslay_event_set_error(
      context,
      unsent.isLost
        ? Int32(WSLAY_ERR_CALLBACK_FAILURE.rawValue) : Int32(WSLAY_ERR_WOULDBLOCK.rawValue))
    return -1
  }
}
