import DendroEngine
import DendroStorage
import DendroTree

/// What the verbs that write one thing have in common.
enum OneWrite {
  /// Text larger than a write may be is refused before it fills the memory.
  static let textLimit = 512 << 20

  /// The JSON of a parameter: the text itself, or standard input for `-`.
  static func json<Result>(
    _ word: String, _ parse: (UnsafeRawBufferPointer) throws -> Result
  ) throws -> Result {
    if word == "-" {
      return try InputFile("-").readAll(limit: textLimit).withUnsafeBytes(parse)
    }
    var word = word
    do {
      return try word.withUTF8 { try parse(UnsafeRawBufferPointer($0)) }
    } catch let error as JSONError {
      var failure = Failure(describing: error)
      if let first = word.utf8.first, error.kind == .syntax, Self.isLetter(first) {
        failure.hint =
          "a string needs quotes of its own: '\"\(word.shortened(to: 80))\"', or --string"
      }
      throw failure
    }
  }

  private static func isLetter(_ byte: UInt8) -> Bool {
    byte >= 0x80 || (byte | 0x20 >= UInt8(ascii: "a") && byte | 0x20 <= UInt8(ascii: "z"))
  }

  /// Says what became of a write.
  static func report(
    _ lsn: LogSequenceNumber?, _ arguments: Arguments, more: [(String, JSONValue)] = [],
    line: String? = nil
  ) throws {
    let terminal = try Terminal(color: arguments.value("color"))
    if arguments.wantsJSON {
      try terminal.print(
        JSONValue.object(
          [
            ("lsn", lsn.map { .unsigned($0.rawValue) } ?? .null),
            ("changed", .bool(lsn != nil)),
          ] + more
        ).text)
    } else if let line {
      try terminal.print(line)
    } else {
      Terminal.note(lsn.map { "write \($0)" } ?? "nothing changed")
    }
    try terminal.flush()
  }
}

extension Command.Parameter {
  fileprivate static let value = Self(name: "VALUE", summary: "JSON; - reads standard input")
}

extension Command.Option {
  fileprivate static let string = Self(
    name: "string", short: "s", summary: "VALUE is a string as it stands, not JSON")
}

extension Command {
  static let set = Command(
    name: "set", summary: "replace what is at a location",
    discussion: """
      VALUE is JSON, also in export form ({".value": …, ".priority": …}); null removes. PATH may end
      in .priority. The database is created where there is none.
      """,
    parameters: [.directory, .path, .value],
    options: [.string, .durability, .json],
    examples: [
      Example(line: "dendro set db /users/ada '{\"name\": \"Ada\"}'", summary: "a subtree"),
      Example(line: "dendro set db /users/ada/name Ada --string", summary: "a string"),
      Example(line: "echo '[1, 2]' | dendro set db /list -", summary: "from standard input"),
      Example(line: "dendro set db /users/ada/.priority 5", summary: "a priority"),
    ],
    run: { arguments in
      let location = try Location(arguments.positional(1))
      let write = try write(at: location, arguments.positional[2], arguments)
      let session = try Session.writing(arguments, path: arguments.positional(1), create: true)
      if location.isPriority, session.engine.view(at: location.path).isEmpty {
        try session.close()
        throw Failure(
          .problem,
          "there is nothing at \("\(location.path)".shortened(to: 80)) that could have a priority")
      }
      let lsn = try session.write(write)
      try session.close()
      try OneWrite.report(lsn, arguments)
      return .success
    })

  private static func write(at location: Location, _ word: String, _ arguments: Arguments) throws
    -> Write
  {
    let node: Node
    if arguments.has("string") {
      guard word.utf8.count <= Limits.stringBytes else {
        throw Failure(.badInput, "the string is longer than \(Limits.stringBytes) bytes")
      }
      node = Node(.string(word))
    } else {
      node = try OneWrite.json(word) { try JSONParser.parse($0, depth: location.path.count) }
    }
    guard location.isPriority else {
      return node.isEmpty ? .remove(location.path) : .set(location.path, node)
    }
    if node.isEmpty { return .setPriority(location.path, nil) }
    guard let scalar = node.scalar, node.priority == nil else {
      throw Failure(.badInput, "a priority is a number, a string or null")
    }
    if case .bool = scalar {
      throw Failure(.badInput, "a priority is a number, a string or null")
    }
    return .setPriority(location.path, scalar)
  }

  static let update = Command(
    name: "update", summary: "change several places at once",
    discussion: """
      VALUE is a JSON object: its keys are paths below PATH, each of which is replaced by its value;
      null removes, .priority as last part sets a priority. All of it happens, or nothing.
      """,
    parameters: [.directory, .path, .value],
    options: [.durability, .json],
    examples: [
      Example(
        line: "dendro update db / '{\"posts/p1/title\": \"New\", \"user-posts/ada/p1\": true}'",
        summary: "two places"),
      Example(
        line: "dendro update db /users '{\"ada/age\": 36, \"bob\": null}'", summary: "one goes"),
    ],
    run: { arguments in
      let location = try Location(arguments.positional(1))
      guard !location.isPriority else {
        throw Failure(.badInput, "a priority has no children to update")
      }
      let entries = try OneWrite.json(arguments.positional[2]) {
        try JSONParser.parseEntries($0, depth: location.path.count)
      }
      let write = Write.update(location.path, entries)
      try write.validate()
      let session = try Session.writing(arguments, path: arguments.positional(1), create: true)
      let lsn = try session.write(write)
      try session.close()
      try OneWrite.report(lsn, arguments)
      return .success
    })

  static let push = Command(
    name: "push", summary: "add a child with a new key in time order",
    discussion: "Prints the key. Keys made later come later in the order of keys.",
    parameters: [.directory, .path, .value],
    options: [.string, .durability, .json],
    examples: [
      Example(line: "dendro push db /messages '{\"text\": \"Hello\"}'", summary: "a list entry")
    ],
    run: { arguments in
      let parent = try Location(arguments.positional(1))
      guard !parent.isPriority, parent.path.count < Limits.depth else {
        throw Failure(
          .badInput, "there can be no children at \(parent.description.shortened(to: 80))")
      }
      var generator = PushIDGenerator()
      var random = SystemRandomNumberGenerator()
      let name = generator.next(now: Platform.now(), random: { random.next() })
      let location = try Location("\(parent.path)/\(name)")
      let write = try write(at: location, arguments.positional[2], arguments)
      if case .remove = write { throw Failure(.badInput, "null makes no child") }
      let session = try Session.writing(arguments, path: arguments.positional(1), create: true)
      let lsn = try session.write(write)
      try session.close()
      try OneWrite.report(lsn, arguments, more: [("key", .string(name))], line: name)
      return .success
    })

  static let remove = Command(
    name: "remove", summary: "remove what is at a location",
    discussion: "Exit code 1 where nothing was there. The whole tree goes only after a question.",
    parameters: [.directory, .path],
    options: [.force, .dryRun, .durability, .json],
    examples: [
      Example(line: "dendro remove db /users/bob", summary: "one subtree"),
      Example(line: "dendro remove db / --force", summary: "everything, unasked"),
    ],
    run: { arguments in
      let session = try Session.writing(arguments, path: arguments.positional(1), create: false)
      let location = session.location
      let node = session.engine.view(at: location.path)
      let isThere = location.isPriority ? node.priority != nil : !node.isEmpty
      if arguments.has(.dryRun) {
        try session.close()
        let leaves = location.isPriority ? (isThere ? 1 : 0) : node.leafCount()
        try OneWrite.report(
          nil, arguments, more: [("leaves", .count(leaves))],
          line: "\(Format.count(leaves, "leaf")) at \(location.description) would be removed")
        return isThere ? .success : .problem
      }
      if location.path.isRoot, isThere, !location.isPriority {
        do {
          try Terminal.confirm(
            "This removes the whole tree, \(Format.count(node.leafCount(), "leaf")).",
            force: arguments.has(.force))
        } catch {
          try session.close()
          throw error
        }
      }
      let lsn = try session.write(
        location.isPriority ? .setPriority(location.path, nil) : .remove(location.path))
      try session.close()
      try OneWrite.report(lsn, arguments)
      return lsn != nil ? .success : .problem
    })

  static let increment = Command(
    name: "increment", summary: "add to the number at a location",
    discussion: """
      Prints the new number. Where there is none, it is DELTA. Integers that overflow become doubles.
      """,
    parameters: [
      .directory, .path,
      Parameter(name: "DELTA", summary: "a number, 1 if left out", isOptional: true),
    ],
    options: [.durability, .json],
    examples: [
      Example(line: "dendro increment db /posts/p1/stars", summary: "one more"),
      Example(line: "dendro increment db /stock/apples -2.5", summary: "two and a half less"),
    ],
    run: { arguments in
      let location = try Location(arguments.positional(1))
      guard !location.isPriority else {
        throw Failure(.badInput, "a priority is set, not incremented")
      }
      let word = arguments.positional(2) ?? "1"
      let delta: Number
      switch (try? JSONParser.parse(word))?.scalar {
      case .integer(let value): delta = .integer(value)
      case .double(let value): delta = .double(value)
      default: throw Failure(.badInput, "DELTA is a number, not \(Failure.quoted(word))")
      }
      let session = try Session.writing(arguments, path: arguments.positional(1), create: true)
      let lsn = try session.write(.increment(location.path, delta))
      let node = session.engine.view(at: location.path)
      try session.close()
      try OneWrite.report(
        lsn, arguments, more: [("value", .node(node, JSONStyle()))], line: JSONWriter.string(node))
      return .success
    })
}
