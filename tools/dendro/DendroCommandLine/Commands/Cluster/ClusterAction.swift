import Dendro
import DendroCluster

/// What `dendro cluster` does: its first word, and what follows.
struct ClusterAction: Sendable {
  var name: String
  /// What the words before ADDRESS are.
  var words: [String] = []
  /// How many of them there are with `--end`; nil: all.
  var endWordCount: Int?
  /// The options that it takes besides `--json` and `--color`.
  var options: [String] = []
  /// Gets the address of PostgreSQL.
  var run: @Sendable (Arguments, _ address: String) throws -> ExitCode

  static let all: [ClusterAction] = [
    .status, .restore, .acceptLoss, .verify, .drain, .move,
  ]

  /// Checks the words, and does it.
  static func run(_ arguments: Arguments) throws -> ExitCode {
    let name = arguments.positional[0]
    guard let action = all.first(where: { $0.name == name }) else {
      let names = all.map(\.name)
      throw Failure.usage(
        "ACTION is \(names.dropLast().joined(separator: ", ")) or \(names.last ?? ""), not \(Failure.quoted(name))"
      )
    }
    let own = Set(all.flatMap(\.options))
    if let option = own.sorted().first(where: {
      arguments.has($0) && !action.options.contains($0)
    }) {
      throw Failure.usage("'cluster \(name)' has no option '--\(option)'")
    }
    let words = action.words.prefix(
      arguments.has("end") ? action.endWordCount ?? .max : .max)
    for (index, word) in words.enumerated() {
      guard let given = arguments.positional(1 + index) else {
        throw Failure.usage("\(word) is missing")
      }
      guard !given.isEmpty else { throw Failure.usage("\(word) is empty") }
    }
    let place = 1 + words.count
    if arguments.positional.count > place + 1 {
      throw Failure.usage(
        "there is one word too many: \(Failure.quoted(arguments.positional[place + 1]))")
    }
    guard let address = try ClusterAddress(arguments, arguments.positional(place)) else {
      throw Failure.usage("ADDRESS is missing, and DENDRO_CLUSTER is not set")
    }
    return try action.run(arguments, address.text)
  }
}
