import DendroEngine
package import DendroTree

/// The parsers of the command line alone, for tests with arbitrary words.
extension CommandLineTool {
  /// Sorts the words of a verb as the verb does, and reads those that every verb reads alike; nothing
  /// is opened.
  ///
  /// - Parameter words: the verb and what follows it.
  /// - Returns: which children the words ask for; nil if they do not.
  /// - Throws: what the verb would report.
  package static func parse(_ words: [String]) throws -> QueryParameters? {
    let command = try command(named: words.first ?? "")
    let arguments = try Arguments(words.dropFirst(), for: command)
    guard !arguments.wantsHelp else { return nil }
    for (index, parameter) in command.parameters.enumerated() where parameter.name == "PATH" {
      _ = try Location(arguments.positional(index))
    }
    _ = try Session.durability(arguments.value("durability"))
    for option in ["at", "from", "to", "since"] { _ = try HistoryPoint(arguments, option) }
    return try QueryOptions.parameters(arguments)
  }
}
