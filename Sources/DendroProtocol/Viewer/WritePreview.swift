package import DendroTree

/// The beginning of what a write has written, as JSON: what the data viewer's log shows beside the path.
package enum WritePreview {
  /// What is longer ends in `…`.
  package static let byteLimit = 120

  /// - Returns: nil for a removal.
  package static func text(_ write: Write) -> String? {
    switch write {
    case .set(_, let node): cut(beginning(node))
    case .update(_, let entries): cut(beginning(entries))
    case .remove: nil
    case .increment(_, let delta): sum(delta)
    case .setPriority(_, let priority): cut(beginning(Node(priority: priority)))
    }
  }

  /// At least as many bytes as are shown and one more, if there are so many.
  private static func beginning(_ node: Node) -> [UInt8] {
    if node.isEmpty { return Array("null".utf8) }
    var text = JSONText(node, style: JSONStyle(.export))
    var bytes: [UInt8] = []
    while bytes.count <= byteLimit, !text.isAtEnd { bytes += text.next(byteCount: byteLimit + 1) }
    return bytes
  }

  private static func beginning(_ entries: [Write.Entry]) -> [UInt8] {
    var bytes = Array("{".utf8)
    for (index, entry) in entries.enumerated() where bytes.count <= byteLimit {
      if index > 0 { bytes.append(UInt8(ascii: ",")) }
      let suffix = entry.action.isPriority ? "/.priority" : ""
      JSONText.append(string: entry.path.relativeText + suffix, to: &bytes)
      bytes.append(UInt8(ascii: ":"))
      switch entry.action {
      case .set(let node): bytes += beginning(node)
      case .remove: bytes += Array("null".utf8)
      case .increment(let delta): bytes += Array(sum(delta).utf8)
      case .setPriority(let priority): bytes += beginning(Node(priority: priority))
      }
    }
    return bytes + Array("}".utf8)
  }

  private static func sum(_ delta: Number) -> String {
    let text = String(decoding: beginning(Node(delta.incrementing(nil))), as: UTF8.self)
    return text.hasPrefix("-") ? text : "+" + text
  }

  private static func cut(_ bytes: [UInt8]) -> String {
    guard bytes.count > byteLimit else { return String(decoding: bytes, as: UTF8.self) }
    var end = byteLimit
    // Not within a character.
    while end > 0, bytes[end] & 0xC0 == 0x80 { end -= 1 }
    return String(decoding: bytes[..<end], as: UTF8.self) + "…"
  }
}

extension Node {
  /// A leaf with the value of a priority; nothing for none.
  fileprivate init(priority: Scalar?) {
    self = priority.map { Node($0) } ?? .empty
  }
}
