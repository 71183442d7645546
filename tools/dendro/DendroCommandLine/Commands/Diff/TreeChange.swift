import DendroTree

/// A place in which two trees differ.
struct TreeChange {
  enum Kind {
    case value
    /// Only the priority of a branch.
    case priority
  }

  var path: Path
  var old: Node
  var new: Node
  var kind = Kind.value

  /// Calls `body` with each of the smallest places in which the trees differ, in the order of paths.
  static func between(
    _ old: Node, _ new: Node, at path: Path = .root, _ body: (TreeChange) throws -> Void
  ) throws {
    try Node.difference(from: old, to: new) { place, old, new in
      let path = path.appending(place)
      guard old.isBranch, new.isBranch else {
        return try body(TreeChange(path: path, old: old, new: new))
      }
      // A branch is reported as a whole if its priority differs.
      try body(TreeChange(path: path, old: old, new: new, kind: .priority))
      try between(old.settingPriority(nil), new.settingPriority(nil), at: path, body)
    }
  }

  // MARK: JSON

  /// A line that `apply` takes; `was` is what has to be there.
  var json: JSONValue {
    let style = JSONStyle(.export)
    func value(_ node: Node) -> JSONValue { node.isEmpty ? .null : .node(node, style) }
    func priority(_ node: Node) -> JSONValue {
      node.priority.map { .node(Node($0), style) } ?? .null
    }
    let path = ("path", JSONValue.string("\(path)"))
    switch kind {
    case .priority:
      return .object([
        ("operation", .string("priority")), path, ("priority", priority(new)),
        ("was", priority(old)),
      ])
    case .value where new.isEmpty:
      return .object([("operation", .string("remove")), path, ("was", value(old))])
    case .value:
      return .object([
        ("operation", .string("set")), path, ("value", value(new)), ("was", value(old)),
      ])
    }
  }

  /// The place of its line among those of a difference: no branch that stays may be empty on the way, since it
  /// would lose its priority. So values are set first, then others removed, then priorities set.
  var turn: Int { kind == .priority ? 2 : new.isEmpty ? 1 : 0 }

  // MARK: Text

  /// - Parameter columns: that the line should fit in.
  func text(_ terminal: Terminal, columns: Int?) -> String {
    var lines = LogLines(terminal: terminal, isJSON: false)
    let place = kind == .priority ? "\(path)/.priority".replacing("//", with: "/") : "\(path)"
    let path = place.printable
    let room = max(16, (columns ?? 220) - 2 - path.columnCount - 2)
    let (mark, color): (String, Terminal.Color) =
      kind == .value && old.isEmpty ? ("+", .green) : new.isEmpty ? ("-", .red) : ("~", .yellow)
    let (before, after) =
      kind == .priority
      ? (old.priority.map { Node($0) } ?? .empty, new.priority.map { Node($0) } ?? .empty)
      : (old, new)
    lines.valueWidth = mark == "~" ? (room - 4) / 2 : room
    let value =
      switch mark {
      case "+": lines.preview(after)
      case "-": lines.preview(before)
      default: "\(lines.preview(before)) → \(lines.preview(after))"
      }
    return terminal.colored(mark, color) + " " + terminal.colored(path, .cyan) + "  " + value
  }
}
