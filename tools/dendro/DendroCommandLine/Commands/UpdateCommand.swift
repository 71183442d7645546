import DendroEngine
import DendroTree

extension Command {
  static let update = Command(
    name: "update", summary: "change several places at once",
    discussion: """
      VALUE is a JSON object: its keys are paths below PATH, each of which is replaced by its value;
      null removes, and a path that ends in .priority sets a priority. The values may have server
      values, as that of 'set'. All of it happens, or nothing. If DIRECTORY is new or empty, a database
      is made there.
      """,
    parameters: [.directory, .path, .value],
    options: [.noCreate, .durability, .wait, .json],
    examples: [
      Example(
        line: "dendro update db / '{\"posts/p1/title\": \"New\", \"user-posts/ada/p1\": true}'",
        summary: "two places"),
      Example(
        line: "dendro update db /users '{\"ada/age\": 36, \"bob\": null}'",
        summary: "one changed, one removed"),
    ],
    run: { arguments in
      let location = try Location(writing: arguments.positional(1))
      guard !location.isPriority else {
        throw Failure(.badInput, "a priority has no children to update")
      }
      let draft = try OneWrite.json(arguments.positional[2]) {
        try JSONParser.parseDraft(updating: $0, at: location.path)
      }
      // What an unset variable of a script leaves.
      guard case .update(_, let entries) = draft.write,
        !entries.contains(where: { $0.path.isRoot && !$0.isPriority })
      else {
        throw Failure(
          .badInput, "a key without a path would replace everything at \(location.description)",
          hint: "'set' does that")
      }
      try draft.write.validate()
      let session = try Session.writing(arguments, at: location, creates: true)
      let lsn = try session.closing { try session.write(draft) }
      try OneWrite.report(lsn, arguments)
      return .success
    })
}
