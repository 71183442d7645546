/// A request for `/.lp`, by which clients speak the protocol of WebSockets if they can open none.
package enum PollRequest: Sendable {
  /// Begins a session.
  case start(PollStart)
  /// Brings what the client has to say, and asks for what the server has to say.
  case poll(PollKey, serial: Int64, [PollSegment])
  /// Asks for the page that ends the session when a browser closes it.
  case page(PollKey)
  /// Ends the session.
  case end(PollKey)

  /// - Returns: nil if the request is for something other than `/.lp`.
  /// - Throws: `RESTError` if the request is malformed.
  package init?(method: String, target: String, headers: HTTPHeaders) throws(RESTError) {
    guard target == "/.lp" || target.hasPrefix("/.lp?") else { return nil }
    guard method == "GET" else {
      throw RESTError(405, "This address is for long polling, with GET.")
    }
    let target = try RequestTarget(target)
    // A request may have hundreds of items.
    let items = [String: String](target.items) { first, _ in first }
    if items["start"] == "t" {
      self = .start(try PollStart(target, items, headers))
      return
    }
    let key = PollKey(id: items["id"] ?? "", password: items["pw"] ?? "")
    if items["disconn"] == "t" {
      self = .end(key)
    } else if items["dframe"] == "t" {
      self = .page(key)
    } else {
      guard let serial = items["ser"].flatMap({ Int64($0) }), serial >= 0 else {
        throw .badRequest("A poll has a serial number.")
      }
      self = .poll(key, serial: serial, try PollSegment.all(of: items))
    }
  }
}

/// How a session of long polling begins.
package struct PollStart: Sendable {
  package let namespace: String?
  /// The session of the client's connection before this one.
  package let lastSession: String?
  package let host: String
  /// The number of the functions that browsers want called; nil for other clients.
  package let callback: String?

  /// The most digits of a callback's number.
  private static let callbackLimit = 16

  fileprivate init(
    _ target: RequestTarget, _ items: [String: String], _ headers: HTTPHeaders
  ) throws(RESTError) {
    guard items["v"] == "5" else { throw .badRequest("The protocol's version must be 5.") }
    namespace = try RESTRequest.namespace(target, headers)
    lastSession = items["ls"]
    host = headers["host"] ?? ""
    callback = items["cb"]
    // It becomes part of a script.
    if let callback {
      guard (1...Self.callbackLimit).contains(callback.utf8.count),
        callback.utf8.allSatisfy({ (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) })
      else { throw .badRequest("A callback is a number.") }
    }
  }
}

/// By what right a request belongs to a session.
package struct PollKey: Hashable, Sendable {
  package let id: String
  package let password: String

  package init(id: String, password: String) {
    self.id = id
    self.password = password
  }
}

/// A part of a client's message.
package struct PollSegment: Hashable, Sendable {
  /// Counts up over all messages of the session, from 0.
  package let number: Int
  /// How many segments the message has.
  package let count: Int
  /// A part of the message's Base64.
  package let data: String

  package init(number: Int, count: Int, data: String) {
    self.number = number
    self.count = count
    self.data = data
  }

  /// The most segments of one message.
  package static let countLimit = 999_999

  /// - Throws: `RESTError` if a number is malformed or data is missing.
  fileprivate static func all(of items: [String: String]) throws(RESTError) -> [PollSegment] {
    var segments: [PollSegment] = []
    while let number = items["seg\(segments.count)"] {
      let index = segments.count
      guard let number = Int(number), (0..<Int.max >> 1).contains(number),
        let count = items["ts\(index)"].flatMap({ Int($0) }), (1...countLimit).contains(count),
        let data = items["d\(index)"]
      else { throw .badRequest("A segment has a number, the number of segments, and data.") }
      segments.append(PollSegment(number: number, count: count, data: data))
    }
    return segments
  }
}
