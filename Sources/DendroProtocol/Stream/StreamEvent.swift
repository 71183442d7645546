package import DendroTree

/// One event of a stream.
package enum StreamEvent: Sendable {
  case change(PlaceChange)
  case keepAlive
  /// The client may no longer read this; the stream ends.
  case cancel(String)
  /// The client's token is no longer valid; the stream ends.
  case authRevoked

  /// The event as it is sent.
  ///
  /// - Parameters:
  ///   - form: of the data.
  ///   - id: the number of the write; nil sends none.
  package func text(_ form: JSONStyle.Form, id: UInt64? = nil) -> AnswerText {
    var text = AnswerText()
    if let id { text.append("id: \(id)\n") }
    switch self {
    case .change(.put(let path, let node)):
      text.append("event: put\ndata: ")
      text.append(pathAndData: path) { $0.append(node, JSONStyle(form)) }
    case .change(.patch(let path, let parts)):
      text.append("event: patch\ndata: ")
      text.append(pathAndData: path) { $0.append(members: parts, JSONStyle(form)) }
    case .keepAlive: text.append("event: keep-alive\ndata: null")
    case .cancel(let reason):
      text.append("event: cancel\ndata: ")
      text.append(Node(.string(reason)), JSONStyle())
    case .authRevoked:
      text.append("event: auth_revoked\ndata: \"credential is no longer valid\"")
    }
    text.append("\n\n")
    return text
  }
}

extension AnswerText {
  fileprivate mutating func append(pathAndData path: Path, _ data: (inout AnswerText) -> Void) {
    append("{\"path\":")
    append(Node(.string(path.description)), JSONStyle())
    append(",\"data\":")
    data(&self)
    append("}")
  }

  /// Appends an object whose keys are paths.
  package mutating func append(
    members: [(path: Path, node: Node)], _ style: JSONStyle
  ) {
    append("{")
    for (index, member) in members.enumerated() {
      if index > 0 { append(",") }
      append(Node(.string(member.path.relativeText)), JSONStyle())
      append(":")
      append(member.node, style)
    }
    append("}")
  }
}
