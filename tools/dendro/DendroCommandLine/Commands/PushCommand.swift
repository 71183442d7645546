import DendroEngine
import DendroTree

extension Command {
  static let push = Command(
    name: "push", summary: "add a child with a new key in time order",
    discussion: """
      Prints the key. Keys made later come later in the order of keys. VALUE may have server values, as
      that of 'set'. If DIRECTORY is new or empty, a database is made there.
      """,
    parameters: [.directory, .path, .value],
    options: [.string, .noCreate, .durability, .wait, .json],
    examples: [
      Example(line: "dendro push db /messages '{\"text\": \"Hello\"}'", summary: "a list entry")
    ],
    run: { arguments in
      let parent = try Location(writing: arguments.positional(1))
      guard !parent.isPriority, parent.path.count < Limits.depth else {
        throw Failure(
          .badInput, "there can be no children at \(parent.description.shortened(to: 80))")
      }
      var generator = PushIDGenerator()
      var random = SystemRandomNumberGenerator()
      let name = generator.next(now: Platform.now(), random: { random.next() })
      let location = try Location("\(parent.path)/\(name)")
      let draft = try OneWrite.draft(at: location, arguments.positional[2], arguments)
      if case .remove = draft.write { throw Failure(.badInput, "null makes no child") }
      let session = try Session.writing(arguments, at: location, creates: true)
      let lsn = try session.closing { try session.write(draft) }
      try OneWrite.report(lsn, arguments, more: [("key", .string(name))], line: name)
      return .success
    })
}
