import DendroServer
import Testing

/// A client that shows every message of the SDKs' protocol.
///
/// Calls block; one thread at a time.
protocol WireClient: AnyObject {
  var hello: String { get }
  /// The number of the last request.
  var number: Int { get set }
  func send(_ text: String) throws
  /// The next message.
  func message() throws -> String
}

/// How a client reaches the server.
enum Transport: CaseIterable {
  case webSocket
  case polls

  /// - Parameter session: the one of the client's connection before this one.
  func client(_ served: Served, after session: String? = nil) throws -> any WireClient {
    try client(port: served.server.port, "ns=app" + (session.map { "&ls=\($0)" } ?? ""))
  }

  func client(port: UInt16, _ parameters: String) throws -> any WireClient {
    switch self {
    case .webSocket: try WebSocketClient(port: port, "/.ws?v=5&\(parameters)")
    case .polls: try PollClient(port: port, parameters)
    }
  }
}

extension WireClient {
  /// The session id of the hello.
  var session: String {
    hello.split(separator: "\"s\":\"").last.map { String($0.prefix { $0 != "\"" }) } ?? ""
  }

  /// Sends a request, without waiting for its answer.
  ///
  /// - Returns: its number.
  @discardableResult
  func request(_ action: String, _ body: String) throws -> Int {
    number += 1
    try send("{\"t\":\"d\",\"d\":{\"r\":\(number),\"a\":\"\(action)\",\"b\":\(body)}}")
    return number
  }

  /// Sends a request, and returns the pushes before its answer and the answer, without the envelopes.
  func callAsFunction(_ action: String, _ body: String) throws -> [String] {
    let number = try request(action, body)
    var messages: [String] = []
    while true {
      let message = try push()
      messages.append(message)
      if message.hasPrefix("\"r\":\(number),") {
        messages[messages.count - 1] = String(message.dropFirst("\"r\":\(number),\"b\":".count))
        return messages
      }
    }
  }

  /// The next data message without its envelope.
  func push() throws -> String {
    let message = try message()
    #expect(message.hasPrefix("{\"t\":\"d\",\"d\":{"))
    return String(message.dropFirst("{\"t\":\"d\",\"d\":{".count).dropLast(2))
  }
}
