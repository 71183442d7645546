import DendroTree

/// A write as one line of JSON, as `log --json` and `diff --json` print it.
struct WriteLine {
  var write: Write
  /// What has to be there before the write; nil if that does not matter.
  var was: Node?
  /// Whether `was` is about the priority alone.
  var isPriority = false

  /// - Throws: `Failure` with what is wrong.
  init(_ bytes: UnsafeRawBufferPointer) throws {
    let members: [String: UnsafeRawBufferPointer]
    do {
      members = try JSONSplit.members(bytes)
    } catch is JSONSplit.Malformed {
      throw Failure(.badInput, "this is no JSON object")
    }
    guard members["root"] == nil else {
      throw Failure(
        .badInput, "this is a write to the second root, which 'log --system' has printed")
    }
    guard let operation = try Self.string("operation", in: members) else {
      throw Failure(.badInput, "'operation' is missing")
    }
    guard let text = try Self.string("path", in: members) else {
      throw Failure(.badInput, "'path' is missing")
    }
    let location = try Location(writing: text)
    guard !location.isPriority else {
      throw Failure(.badInput, "'path' ends in .priority; the operation 'priority' sets one")
    }
    let path = location.path
    switch operation {
    case "update":
      guard let entries = members["entries"] else {
        throw Failure(.badInput, "'entries' is missing")
      }
      do {
        write = .update(
          path,
          try JSONSplit.elements(entries).map { try Self.entry($0, depth: path.count) })
      } catch is JSONSplit.Malformed {
        throw Failure(.badInput, "'entries' is no array of objects")
      }
    default:
      switch try Self.action(operation, members, depth: path.count) {
      case .set(let node): write = .set(path, node)
      case .remove: write = .remove(path)
      case .increment(let delta): write = .increment(path, delta)
      case .setPriority(let priority): write = .setPriority(path, priority)
      }
    }
    isPriority = operation == "priority"
    was = try members["was"].map { try JSONParser.parse($0, depth: path.count) }
    try write.validate()
  }

  private static func entry(_ bytes: UnsafeRawBufferPointer, depth: Int) throws -> Write.Entry {
    let members = try JSONSplit.members(bytes)
    guard let text = try string("path", in: members) else {
      throw Failure(.badInput, "an entry has no 'path'")
    }
    let path = try Location(writing: text.isEmpty ? "/" : text).path
    let operation = try string("operation", in: members) ?? "set"
    return Write.Entry(
      path: path, action: try action(operation, members, depth: depth + path.count))
  }

  private static func action(
    _ operation: String, _ members: [String: UnsafeRawBufferPointer], depth: Int
  ) throws -> Write.Entry.Action {
    func scalar(_ name: String) throws -> Scalar? {
      guard let bytes = members[name] else { throw Failure(.badInput, "'\(name)' is missing") }
      let node = try JSONParser.parse(bytes)
      guard !node.isBranch, node.priority == nil else {
        throw Failure(.badInput, "'\(name)' is not a single value")
      }
      return node.scalar
    }
    switch operation {
    case "set":
      guard let value = members["value"] else { throw Failure(.badInput, "'value' is missing") }
      let node = try JSONParser.parse(value, depth: depth)
      return node.isEmpty ? .remove : .set(node)
    case "remove": return .remove
    case "increment":
      switch try scalar("delta") {
      case .integer(let value): return .increment(.integer(value))
      case .double(let value): return .increment(.double(value))
      default: throw Failure(.badInput, "'delta' is no number")
      }
    case "priority": return .setPriority(try scalar("priority"))
    default:
      let known = ["set", "update", "remove", "increment", "priority"]
      throw Failure(
        .badInput, "there is no operation \(Failure.quoted(operation))",
        hint: suggestion(for: operation, among: known).map { "did you mean '\($0)'?" })
    }
  }

  private static func string(_ name: String, in members: [String: UnsafeRawBufferPointer]) throws
    -> String?
  {
    guard let bytes = members[name] else { return nil }
    guard case .string(let text)? = try JSONParser.parse(bytes).scalar else {
      throw Failure(.badInput, "'\(name)' is no string")
    }
    return text
  }

  /// Whether what has to be there is there.
  func isMet(by root: Node) -> Bool {
    guard let was else { return true }
    let node = root.node(at: write.path)
    return isPriority ? node.priority == was.scalar : node == was
  }
}
