import DendroEngine
import DendroTree
import Synchronization

/// The JSON that a server begins with.
struct Seed {
  let file: String

  enum Outcome {
    case imported(leaves: Int)
    case replaced(leaves: Int, by: Int)
    /// There was data.
    case passedOver
  }

  /// Puts it into a database on the disk, as one write: a server that is killed meanwhile, or a bad file, leaves what
  /// was there, and the next start finds either all of it or nothing.
  ///
  /// - Parameter replaces: whether it takes the place of data that is there. If not, the file is not even read then: a
  ///   supervisor starts a server with the same words again and again.
  func load(into engine: Engine, replaces: Bool) throws -> Outcome {
    let isEmpty = try engine.node(at: .root).node.isEmpty
    if !isEmpty, !replaces { return .passedOver }
    var node = Node.empty
    try parse(pieceBytes: .max) { piece in
      switch piece.content {
      case .node(let part) where piece.path.isRoot: node = part
      case .node(let part):
        _ = node.apply(part.isEmpty ? .remove(piece.path) : .set(piece.path, part))
      case .priority(let priority): _ = node.apply(.setPriority(piece.path, priority))
      }
    }
    let old = isEmpty ? 0 : try engine.view(at: .root).leafCount()
    do {
      try Session(engine: engine, location: .root)
        .write(node.isEmpty ? .remove(.root) : .set(.root, node))
    } catch EngineError.writeTooLarge {
      throw Failure(
        .badInput, "\(file) is too large for one write",
        hint: "'dendro import' puts it into the database in parts, before it is served")
    }
    let leaves = node.leafCount()
    return isEmpty ? .imported(leaves: leaves) : .replaced(leaves: old, by: leaves)
  }

  /// Puts it into a database in memory, in pieces of any number.
  func load(intoMemory engine: Engine) throws {
    let failure = Mutex<EngineError?>(nil)
    @Sendable func submit(_ write: Write) {
      engine.submit(Draft(write)) { result in
        if case .failure(let error) = result { failure.withLock { $0 = $0 ?? error } }
      }
    }
    try parse(pieceBytes: 1 << 16) { piece in
      switch piece.content {
      case .node(let node): submit(node.isEmpty ? .remove(piece.path) : .set(piece.path, node))
      case .priority(let priority): submit(.setPriority(piece.path, priority))
      }
    }
    try engine.synchronize()
    if let failure = failure.withLock({ $0 }) { throw failure }
  }

  private func parse(pieceBytes: Int, yield: @escaping (JSONPiece) throws -> Void) throws {
    let input = try InputFile(file)
    do {
      try JSONParser.parse(
        pieceBytes: pieceBytes, source: { try input.read(into: $0) }, yield: yield)
    } catch let error as JSONError {
      throw Failure(.badInput, "\(file): \(error)")
    }
  }

  /// Says what was done, in a line on standard error.
  func note(_ outcome: Outcome, asJSON: Bool) {
    func leaves(_ count: Int) -> String { Format.count(count, "leaf") }
    switch outcome {
    case .imported(let count):
      note(
        "\(file) was imported: \(leaves(count))", asJSON,
        [("done", .string("imported")), ("leaves", .count(count))])
    case .replaced(let old, let new):
      note(
        "\(file) was imported in place of \(leaves(old)): \(leaves(new))", asJSON,
        [("done", .string("replaced")), ("replaced", .count(old)), ("leaves", .count(new))])
    case .passedOver:
      note(
        "there is data already, so \(file) was not imported (--replace puts it in its place)",
        asJSON, [("done", .string("passed over"))])
    }
  }

  private func note(_ line: String, _ asJSON: Bool, _ members: [(String, JSONValue)]) {
    Terminal.note(
      asJSON ? JSONValue.object([("import", .string(file))] + members).text : "dendro: " + line)
  }
}
