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

  /// - Parameter text: nil if it was left out, for the root. An empty one, which an unset variable of a script
  ///   leaves, is refused.
  init(_ text: String?) throws {
    let text = text ?? "/"
    guard !text.isEmpty else { throw Self.refusal("PATH is empty") }
    let pathOfPriority = text.pathOfPriority
    isPriority = pathOfPriority != nil
    do {
      path = try Path(parsing: pathOfPriority ?? text)
    } catch {
      throw Failure(.badInput, "the path \(Failure.quoted(text)): \(error.message)")
    }
    guard path.count <= Limits.depth else {
      throw Failure(
        .badInput, "the path \(Failure.quoted(text)) has more than \(Limits.depth) levels")
    }
  }

  /// A path that a verb writes to.
  init(writing text: String?) throws {
    try Self.checkWriting(text)
    try self.init(text)
  }

  /// Refuses a path with an empty part, which an unset variable of a script leaves: it would name another place
  /// than was meant.
  static func checkWriting(_ text: String?) throws {
    let text = text ?? ""
    let parts = text.utf8.split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false)
    let keys = parts.dropFirst(text.startsLiterally(with: "/") ? 1 : 0)
    guard text == "/" || !keys.contains(where: \.isEmpty) else {
      throw refusal(
        text.isEmpty ? "PATH is empty" : "PATH has an empty part: \(Failure.quoted(text))")
    }
  }

  static func refusal(_ message: String) -> Failure {
    Failure.usage(message, hint: "/ is the root")
  }

  var description: String {
    isPriority ? (path.isRoot ? "/.priority" : "\(path)/.priority") : "\(path)"
  }
}
