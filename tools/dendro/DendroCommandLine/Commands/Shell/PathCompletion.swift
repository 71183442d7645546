import DendroTree

/// The paths that a word may be completed to.
enum PathCompletion {
  static let limit = 1000

  /// - Parameters:
  ///   - text: what is written of the path so far.
  ///   - node: of the location that the part up to the last slash names.
  static func candidates(for text: String, in node: Node) -> [String] {
    let cut = text.lastIndex(of: "/").map { text.index(after: $0) } ?? text.startIndex
    let prefix = text[cut...]
    let parent = text[..<cut]
    var found: [String] = []
    let first = prefix.isEmpty ? nil : try? Key(String(prefix))
    for (key, child) in first.map({ node.children(from: $0) }) ?? node.children {
      let name = key.string
      guard name.hasPrefix(prefix) else {
        // Numbers are in the order of their values: past them, keys that begin alike stand together.
        if !found.isEmpty, Int(name) == nil { break }
        continue
      }
      found.append(parent + name + (child.isBranch ? "/" : ""))
      if found.count == limit { break }
    }
    return found
  }

  /// The part of a path in front of what is completed.
  static func parent(of text: String) -> String {
    text.lastIndex(of: "/").map { String(text[...$0]) } ?? ""
  }
}
