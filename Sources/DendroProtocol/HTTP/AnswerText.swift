package import DendroTree

/// The text of an answer, made in parts while it is sent: bytes, and nodes as JSON.
package struct AnswerText: Sendable {
  private enum Part: Sendable {
    case bytes([UInt8])
    case node(JSONText)
  }

  /// The request of which the answer that it was done stands before all parts, and is made when it is sent. Nothing that is
  /// counted by reference: a push is copied for each listener.
  private var doneRequest: Int64?
  private var parts: [Part] = []
  private var next = 0

  /// About the bytes of an answer that is not made yet.
  private static let answerByteCount = 64

  package init() {}

  package init(_ text: String) { append(text) }

  package init(bytes: [UInt8]) { append(bytes: bytes) }

  /// The answer that a request was done. It is made when it is sent, on the thread that does so.
  init(doneRequest number: Int64) { doneRequest = number }

  package init(_ node: Node, _ style: JSONStyle) { append(node, style) }

  package mutating func append(_ text: String) { append(bytes: Array(text.utf8)) }

  package mutating func append(bytes: [UInt8]) {
    guard case .bytes(var before)? = parts.last else {
      parts.append(.bytes(bytes))
      return
    }
    parts[parts.count - 1] = .bytes([])  // Otherwise what there is would be copied.
    before += bytes
    parts[parts.count - 1] = .bytes(before)
  }

  /// Appends the rest of another text.
  package mutating func append(_ text: AnswerText) {
    if let number = text.doneRequest { append(bytes: WireText.done(number)) }
    for part in text.parts[text.next...] {
      switch part {
      case .bytes(let bytes): append(bytes: bytes)
      case .node: parts.append(part)
      }
    }
  }

  /// Appends a node as JSON. What is short is written at once.
  package mutating func append(_ node: Node, _ style: JSONStyle) {
    var text = JSONText(node, style: style)
    if node.childCount < 64 {
      append(bytes: text.next(byteCount: 4096))
      if text.isAtEnd { return }
    }
    parts.append(.node(text))
  }

  /// The bytes that are made already, and for each node whose text is made later some, and those of the long string
  /// that it is at.
  package var byteCount: Int {
    parts[next...].reduce(doneRequest == nil ? 0 : Self.answerByteCount) { count, part in
      switch part {
      case .bytes(let bytes): count + bytes.count
      case .node(let text): count + 4096 + text.keptByteCount
      }
    }
  }

  package var isAtEnd: Bool { doneRequest == nil && next == parts.count }

  /// Returns the next part: about `byteCount` bytes, or some more; empty at the end.
  package mutating func next(byteCount: Int = 1 << 16) -> [UInt8] {
    var result: [UInt8] = []
    if let number = doneRequest {
      result = WireText.done(number)
      doneRequest = nil
    }
    while result.count < byteCount, next < parts.count {
      switch parts[next] {
      case .bytes(let bytes):
        result = result.isEmpty ? bytes : result + bytes
        parts[next] = .bytes([])
        next += 1
      case .node(var text):
        parts[next] = .bytes([])  // Otherwise the text would be copied.
        let part = text.next(byteCount: byteCount - result.count)
        result = result.isEmpty ? part : result + part
        if text.isAtEnd { next += 1 } else { parts[next] = .node(text) }
      }
    }
    return result
  }

  /// Makes the beginning now: about so many bytes, or some more.
  ///
  /// - Returns: whether that is all.
  package mutating func prepare(byteCount: Int) -> Bool {
    let beginning = next(byteCount: byteCount)
    let isWhole = isAtEnd
    parts.replaceSubrange(..<next, with: [.bytes(beginning)])
    next = 0
    return isWhole
  }

  /// All of the rest.
  package mutating func rest() -> [UInt8] {
    var result: [UInt8] = []
    while !isAtEnd { result += next() }
    return result
  }
}
