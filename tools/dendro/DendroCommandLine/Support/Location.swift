import DendroTree

/// A path, or the priority of the node at a path.
struct Location {
  let path: Path
  let isPriority: Bool

  static let root = Location(path: .root, isPriority: false)

  private init(path: Path, isPriority: Bool) {
    self.path = path
    self.isPriority = isPriority
  }

  init(_ text: String?) throws {
    let text = text ?? "/"
    let suffix = "/.priority"
    isPriority = text.hasSuffix(suffix) || text == ".priority"
    do {
      path = try Path(parsing: String(isPriority ? text.dropLast(suffix.count) : text[...]))
    } catch {
      throw Failure(.badInput, "the path \(Failure.quoted(text)): \(error.message)")
    }
    guard path.count <= Limits.depth else {
      throw Failure(
        .badInput, "the path \(Failure.quoted(text)) has more than \(Limits.depth) levels")
    }
  }

  /// A path that a verb writes to. An empty part, which an unset variable of a script leaves, would name
  /// the root or another place than was meant.
  init(writing text: String?) throws {
    let text = text ?? ""
    let parts = text.split(separator: "/", omittingEmptySubsequences: false)
    let keys = parts.dropFirst(text.hasPrefix("/") ? 1 : 0)
    guard text == "/" || !keys.contains(where: \.isEmpty) else {
      throw Failure.usage(
        text.isEmpty
          ? "PATH is empty" : "PATH has an empty part: \(Failure.quoted(text))",
        hint: "/ is the root")
    }
    try self.init(text)
  }

  var description: String {
    isPriority ? (path.isRoot ? "/.priority" : "\(path)/.priority") : "\(path)"
  }
}
