import DendroEngine
import DendroTree

extension Command {
  static let update = Command(
    name: "update", summary: "change several places at once",
    discussion: """
      VALUE is a JSON object: its keys are paths below PATH, each of which is replaced by its value;
      null removes, and a path that ends in .priority sets a priority. All of it happens, or nothing.
      If DIRECTORY is new or empty, a database is made there.
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
      let entries = try OneWrite.json(arguments.positional[2]) {
        try JSONParser.parseEntries($0, depth: location.path.count)
      }
      // What an unset variable of a script leaves.
      guard !entries.contains(where: { $0.path.isRoot && !$0.isPriority }) else {
        throw Failure(
          .badInput, "a key without a path would replace everything at \(location.description)",
          hint: "'set' does that")
      }
      let write = Write.update(location.path, entries)
      try write.validate()
      let session = try Session.writing(arguments, at: location, creates: true)
      let lsn = try session.closing { try session.write(write) }
      try OneWrite.report(lsn, arguments)
      return .success
    })
}
