import DendroEngine
import DendroTree

extension Command {
  static let remove = Command(
    name: "remove", summary: "remove what is at a location",
    discussion: """
      Exit code 1 if nothing was there. Before the whole tree is removed, the command asks; without a
      terminal it needs --force.
      """,
    parameters: [.directory, .path],
    options: [.force, .dryRun, .durability, .wait, .json],
    examples: [
      Example(line: "dendro remove db /users/bob", summary: "one subtree"),
      Example(line: "dendro remove db / --force", summary: "everything, without a question"),
    ],
    run: { arguments in
      let location = try Location(writing: arguments.positional(1))
      let session = try Session.writing(arguments, at: location, creates: false)
      let node = try session.engine.view(at: location.path)
      let isThere = location.isPriority ? node.priority != nil : !node.isEmpty
      if arguments.has(.dryRun) {
        try session.close()
        let leaves = location.isPriority ? (isThere ? 1 : 0) : node.leafCount()
        try OneWrite.report(
          nil, arguments, more: [("leaves", .count(leaves))],
          line: "\(Format.count(leaves, "leaf")) at \(location.description) would be removed")
        return isThere ? .success : .problem
      }
      let lsn = try session.closing {
        if location.path.isRoot, !location.isPriority {
          try Terminal.confirmRemovingAll(of: node, arguments)
        }
        return try session.write(
          location.isPriority ? .setPriority(location.path, nil) : .remove(location.path))
      }
      try OneWrite.report(lsn, arguments)
      return lsn != nil ? .success : .problem
    })
}

extension Terminal {
  /// Asks before the whole tree is removed, if there is anything; see `confirm`.
  static func confirmRemovingAll(of root: Node, _ arguments: Arguments) throws {
    if root.isEmpty { return }
    try confirm(
      "This removes the whole tree, \(Format.count(root.leafCount(), "leaf")).",
      force: arguments.has(.force))
  }
}
