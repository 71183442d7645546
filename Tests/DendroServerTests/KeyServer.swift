import DendroPlatform
import Dispatch
import Synchronization
import Testing

/// A server of keys that answers each request as the test says, also wrongly.
///
/// Unchecked: the socket is set once.
final class KeyServer: @unchecked Sendable {
  /// What it does with a request.
  enum Answer: Sendable, CustomTestStringConvertible {
    case bytes(String)
    /// The connection stays open without an answer.
    case nothing

    var testDescription: String {
      switch self {
      case .bytes(let text): String(text.prefix(100))
      case .nothing: "nothing"
      }
    }

    static func keys(_ text: String, _ headers: String = "") -> Answer {
      .bytes("HTTP/1.1 200 OK\r\n\(headers)Content-Length: \(text.utf8.count)\r\n\r\n\(text)")
    }
  }

  let port: UInt16
  private let listener: Int32
  private let state: Mutex<State>
  private let done = DispatchSemaphore(value: 0)

  private struct State {
    var answer: Answer
    var requests: [String] = []
    /// Connections without an answer.
    var open: [Int32] = []
  }

  init(_ answer: Answer) throws {
    state = Mutex(State(answer: answer))
    listener = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    inet_pton(AF_INET, "127.0.0.1", &address.sin_addr)
    var size = socklen_t(MemoryLayout<sockaddr_in>.size)
    let listener = listener
    let result = withUnsafeMutablePointer(to: &address) { address in
      address.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        bind(listener, $0, size) == 0 && listen(listener, 16) == 0
          && getsockname(listener, $0, &size) == 0
      }
    }
    port = address.sin_port.bigEndian
    try #require(result)
    let thread = DispatchQueue(label: "keys")
    thread.async { [self] in
      while case let client = accept(listener, nil, nil), client >= 0 { serve(client) }
      done.signal()
    }
  }

  var url: String { "http://127.0.0.1:\(port)/keys" }

  var answer: Answer {
    get { state.withLock { $0.answer } }
    set { state.withLock { $0.answer = newValue } }
  }

  /// The first lines of the requests so far.
  var requests: [String] { state.withLock { $0.requests } }

  private func serve(_ client: Int32) {
    var request: [UInt8] = []
    var buffer = [UInt8](repeating: 0, count: 4096)
    while request.firstRange(of: Array("\r\n\r\n".utf8)) == nil {
      let count = recv(client, &buffer, buffer.count, 0)
      guard count > 0 else { break }
      request += buffer[..<count]
    }
    let line = String(decoding: request, as: UTF8.self).prefix { $0 != "\r\n" }
    let answer = state.withLock { state in
      state.requests.append(String(line))
      if case .nothing = state.answer { state.open.append(client) }
      return state.answer
    }
    guard case .bytes(let text) = answer else { return }
    let bytes = Array(text.utf8)
    var offset = 0
    while offset < bytes.count {
      let count = bytes[offset...].withUnsafeBytes {
        send(client, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL))
      }
      guard count > 0 else { break }
      offset += count
    }
    close(client)
  }

  func stop() {
    shutdown(listener, Int32(SHUT_RDWR))
    done.wait()
    close(listener)
    for client in state.withLock({ $0.open }) { close(client) }
  }
}
