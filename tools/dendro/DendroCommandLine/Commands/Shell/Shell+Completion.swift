import DendroEngine
import DendroTree
import Synchronization

extension Shell {
  /// Where the prompt is, for the completion of paths.
  static let position = Mutex(Path.root)

  /// Proposes verbs for the first word, options behind two dashes, else paths; behind one dash both, since keys
  /// begin so too.
  static func proposer(_ directory: String) -> LineEditor.Proposer {
    { line, word in
      let words = line.split(separator: " ")
      guard let verb = words.first else {
        return allVerbs.filter { $0.hasPrefix(word) }.sorted()
      }
      var options: [String] = []
      if word.hasPrefix("-") {
        let command = CommandLineTool.commands.first { $0.name == verb }
        options = (command?.options ?? []).map { "--\($0.name)" }.filter { $0.hasPrefix(word) }
        if word.hasPrefix("--") { return options }
      }
      let parent = PathCompletion.parent(of: word)
      let base = position.withLock { $0 }
      guard let place = try? Location(parent.isEmpty ? "/" : parent).path else { return options }
      let path = word.hasPrefix("/") ? place : base.appending(place)
      guard
        let state = try? ReadState.states(of: directory, at: [nil], path, notesDamage: false)[0]
      else { return options }
      return options + PathCompletion.candidates(for: word, in: state.root.node(at: path))
    }
  }
}
