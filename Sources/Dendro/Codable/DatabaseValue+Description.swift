extension Database.Value: CustomStringConvertible, CustomDebugStringConvertible {
  /// The data as a line of text for people, much like JSON: `{"stars": 3, "tags": {"0": "wood"}}`.
  ///
  /// Of what is longer than about 4,000 characters only the beginning, and "…": an `EncodingError` shows
  /// the whole value that it is about, however deep.
  public var description: String {
    var text = ""
    // Without recursion, like comparison.
    var open: [IndexingIterator<Children>] = []

    func append(_ value: Database.Value) {
      switch value {
      case .null: text += "null"
      case .bool(let value): text += "\(value)"
      case .integer(let value): text += "\(value)"
      case .double(let value): text += "\(value)"
      case .string(let value): text += Self.quoted(value)
      case .children(let children):
        text += "{"
        open.append(children.makeIterator())
      }
    }

    append(self)
    while let last = open.indices.last {
      if text.utf8.count > Self.descriptionLimit { return text + "…" }
      if let (key, value) = open[last].next() {
        if text.utf8.last != UInt8(ascii: "{") { text += ", " }
        text += Self.quoted(key) + ": "
        append(value)
      } else {
        text += "}"
        open.removeLast()
      }
    }
    return text
  }

  /// The same as ``description``.
  public var debugDescription: String { description }

  private static let descriptionLimit = 4_000

  private static func quoted(_ text: String) -> String {
    text.utf8.count <= descriptionLimit
      ? text.debugDescription : text.prefix(descriptionLimit).debugDescription + "…"
  }
}
