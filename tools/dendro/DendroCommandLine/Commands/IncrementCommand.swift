import DendroEngine
import DendroTree

extension Command {
  static let increment = Command(
    name: "increment", summary: "add to the number at a location",
    discussion: """
      Prints the new number. If nothing is, it is DELTA. If something other than a number is, the
      command asks before it puts DELTA in its place; without a terminal it needs --replace. Integers that
      overflow become doubles. If DIRECTORY is new or empty, a database is made there.
      """,
    parameters: [
      .directory, .path,
      Parameter(name: "DELTA", summary: "a number, 1 if left out", isOptional: true),
    ],
    options: [
      Option(name: "replace", short: "r", summary: "replace what is not a number by DELTA"),
      .noCreate, .durability, .wait, .json,
    ],
    examples: [
      Example(line: "dendro increment db /posts/p1/stars", summary: "one more"),
      Example(line: "dendro increment db /stock/apples -2.5", summary: "two and a half less"),
    ],
    run: { arguments in
      let location = try Location(writing: arguments.positional(1))
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
      let session = try Session.writing(arguments, at: location, creates: true)
      let (lsn, node) = try session.closing {
        if !arguments.has("replace") { try confirmReplacement(at: location.path, session.engine) }
        let lsn = try session.write(.increment(location.path, delta))
        return (lsn, try session.engine.view(at: location.path))
      }
      try OneWrite.report(
        lsn, arguments, more: [("value", .node(node, JSONStyle()))], line: JSONWriter.string(node))
      return .success
    })

  /// Asks if the increment would replace anything but a number: at its place, or a leaf above it.
  private static func confirmReplacement(at path: Path, _ engine: Engine) throws {
    for count in 0...path.count {
      let place = path.prefix(count)
      let isTarget = count == path.count
      let node = try engine.view(at: place)
      guard !node.isEmpty else { return }
      switch node.scalar {
      case .integer where isTarget, .double where isTarget: return
      case nil where !isTarget: continue
      default: break
      }
      let claim = "\(place) is not a \(isTarget ? "number" : "subtree"): \(Format.data(node))"
      guard Terminal.canAsk else {
        throw Failure(
          .problem, "\(claim); nothing was done", hint: "--replace puts the new number in its place"
        )
      }
      return try Terminal.confirm("\(claim). The new number replaces it.", force: false)
    }
  }
}
