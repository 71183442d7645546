package import DendroTree

/// The messages of a server.
package enum WireText {
  /// The first message of a connection.
  ///
  /// - Parameters:
  ///   - time: milliseconds since 1970.
  ///   - host: for reconnecting.
  ///   - session: by which the client names this connection later.
  ///   - server: what is said to clients that number their writes; nil for a database that cannot be written.
  package static func hello(
    time: Int64, host: String, session: String, server: NumberedServer? = nil
  ) -> AnswerText {
    var text = AnswerText(
      "{\"t\":\"c\",\"d\":{\"t\":\"h\",\"d\":{\"ts\":\(time),\"v\":\"5\",\"h\":")
    text.append(string: host)
    text.append(",\"s\":")
    text.append(string: session)
    if let server { text.append(",\"dendro\":" + server.text) }
    text.append("}}}")
    return text
  }

  /// The client is to close the connection and to connect to the host.
  package static func reset(host: String) -> AnswerText { control("r", host) }

  /// A sentence for the client's log.
  package static func error(_ sentence: String) -> AnswerText { control("e", sentence) }

  private static func control(_ kind: String, _ data: String) -> AnswerText {
    var text = AnswerText("{\"t\":\"c\",\"d\":{\"t\":\"\(kind)\",\"d\":")
    text.append(string: data)
    text.append("}}")
    return text
  }

  /// The answer to a ping.
  package static let pong = AnswerText("{\"t\":\"c\",\"d\":{\"t\":\"o\",\"d\":{}}}")

  /// The first message over a WebSocket to which a client that polls may change over.
  package static let acknowledgement = AnswerText("{\"t\":\"c\",\"d\":{\"t\":\"a\",\"d\":{}}}")

  /// The last message to polls: what follows comes over the WebSocket.
  package static let endOfTransmission = AnswerText(
    "{\"t\":\"c\",\"d\":{\"t\":\"n\",\"d\":{}}}")

  /// What an answer carries.
  package enum Content: Sendable {
    case nothing
    case object
    case node(Node)
    case text(String)
    /// JSON as it stands.
    case json(String)
  }

  package static func answer(_ number: Int64, status: String, _ content: Content) -> AnswerText {
    // Each write has one of these.
    if case .nothing = content, status == "ok" {
      return AnswerText(doneRequest: number)
    }
    var text = AnswerText(bytes: beginning(number, status))
    switch content {
    case .nothing: text.append("\"\"")
    case .object: text.append("{}")
    case .node(let node): text.append(node, JSONStyle(.export))
    case .text(let reason): text.append(string: reason)
    case .json(let json): text.append(json)
    }
    text.append("}}}")
    return text
  }

  /// The answer that a request was done.
  static func done(_ number: Int64) -> [UInt8] {
    var bytes = beginning(number)
    bytes += endOfDone
    return bytes
  }

  // Bytes, since each write has one of these: those of a string are found again each time.
  private static let start = Array("{\"t\":\"d\",\"d\":{\"r\":".utf8)
  private static let endOfDone = Array(",\"b\":{\"s\":\"ok\",\"d\":\"\"}}}".utf8)

  private static func beginning(_ number: Int64) -> [UInt8] {
    var bytes: [UInt8] = []
    bytes.reserveCapacity(64)
    bytes += start
    JSONText.append(.integer(number), to: &bytes)
    return bytes
  }

  private static func beginning(_ number: Int64, _ status: String) -> [UInt8] {
    var bytes = beginning(number)
    bytes += ",\"b\":{\"s\":\"".utf8
    bytes += status.utf8
    bytes += "\",\"d\":".utf8
    return bytes
  }

  /// What has changed at a listen's location.
  package static func push(_ change: PlaceChange, at path: Path, tag: Int64?) -> AnswerText {
    var text: AnswerText
    switch change {
    case .put(let relative, let node):
      text = begin("d", path.appending(relative))
      text.append(node, JSONStyle(.export))
    case .patch(let relative, let parts):
      text = begin("m", path.appending(relative))
      text.append(members: parts, JSONStyle(.export))
    }
    return end(text, tag)
  }

  /// The beginning of a push to a client that has a value from an earlier connection. `resumed` completes it.
  ///
  /// - Parameters:
  ///   - parts: what has changed.
  ///   - hash: of the client's value with these changes.
  package static func resuming(
    _ parts: [(path: Path, node: Node)], at path: Path, hash: String
  ) -> AnswerText {
    var text = begin("m", path)
    text.append(members: parts, JSONStyle(.export))
    text.append(",\"h\":\"\(hash)\"")
    return text
  }

  /// Completes the push that `resuming` has begun.
  ///
  /// - Parameter later: what has changed since then.
  package static func resumed(
    _ text: AnswerText, _ later: [(path: Path, node: Node)]
  ) -> AnswerText {
    var text = text
    if !later.isEmpty {
      text.append(",\"then\":")
      text.append(members: later, JSONStyle(.export))
    }
    return end(text, nil)
  }

  /// The children of a listen's location.
  package static func shallowPush(_ node: Node, at path: Path, tag: Int64?) -> AnswerText {
    var text = begin("d", path)
    text.append(bytes: ShallowText.whole(node))
    return end(text, tag)
  }

  /// Those children of a listen's location that have changed, as they are now.
  package static func shallowPush(
    _ children: [(key: Key, node: Node)], at path: Path, tag: Int64?
  ) -> AnswerText {
    var bytes = Array("{".utf8)
    for (key, node) in children {
      if bytes.count > 1 { bytes.append(UInt8(ascii: ",")) }
      JSONText.append(string: key.string, to: &bytes)
      bytes.append(UInt8(ascii: ":"))
      bytes += ShallowText.form(node)
    }
    bytes.append(UInt8(ascii: "}"))
    var text = begin("m", path)
    text.append(bytes: bytes)
    return end(text, tag)
  }

  private static func end(_ text: AnswerText, _ tag: Int64?) -> AnswerText {
    var text = text
    if let tag { text.append(",\"t\":\(tag)") }
    text.append("}}}")
    return text
  }

  private static func begin(_ action: String, _ path: Path) -> AnswerText {
    var text = AnswerText("{\"t\":\"d\",\"d\":{\"a\":\"\(action)\",\"b\":{\"p\":")
    text.append(string: path.relativeText)
    text.append(",\"d\":")
    return text
  }

  /// A listen is over, since the client may no longer read there.
  ///
  /// - Parameter query: the query object as the client sent it.
  package static func cancel(_ path: Path, query: String?) -> AnswerText {
    var text = AnswerText("{\"t\":\"d\",\"d\":{\"a\":\"c\",\"b\":{\"p\":")
    text.append(string: path.relativeText)
    if let query { text.append(",\"q\":[\(query)]") }
    text.append("}}}")
    return text
  }

  /// A text for the client's console.
  package static func debug(_ message: String) -> AnswerText {
    var text = AnswerText("{\"t\":\"d\",\"d\":{\"a\":\"sd\",\"b\":{\"msg\":")
    text.append(string: message)
    text.append("}}}")
    return text
  }

  /// The client's credential is no longer valid.
  package static func revoked(status: String, _ reason: String) -> AnswerText {
    var text = AnswerText(
      "{\"t\":\"d\",\"d\":{\"a\":\"ac\",\"b\":{\"s\":\"\(status)\",\"d\":")
    text.append(string: reason)
    text.append("}}}")
    return text
  }
}

extension AnswerText {
  /// Appends a string as JSON.
  mutating func append(string: String) {
    var bytes: [UInt8] = []
    JSONText.append(string: string, to: &bytes)
    append(bytes: bytes)
  }
}
