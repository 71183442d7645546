import DendroEngine
import DendroTree
import Synchronization

extension Shell {
  /// Where the prompt is, for the completion of paths.
  static let position = Mutex(Path.root)

  /// Proposes verbs for the first word, options behind two dashes, else paths; behind one dash both, since keys
  /// begin so too.
  static func proposer(_ directory: String) -> LineEditor.Proposer {
    { line, rest in
      // The library begins a word anew behind a quotation mark, and at other characters that may stand in keys.
      let before = ShellWords(line)
      let word = ShellWords(line + rest).word ?? ""
      guard let verb = before.words.first else {
        return allVerbs.filter { $0.hasPrefix(word) }.sorted()
      }
      var options: [String] = []
      if word.hasPrefix("-") {
        let command = CommandLineTool.commands.first { $0.name == verb }
        options = (command?.options ?? []).map { "--\($0.name)" }.filter { $0.hasPrefix(word) }
        if word.hasPrefix("--") { return before.completions(options) }
      }
      let parent = PathCompletion.parent(of: word)
      let base = position.withLock { $0 }
      guard let place = try? Location(parent.isEmpty ? "/" : parent).path else {
        return before.completions(options)
      }
      let path = word.hasPrefix("/") ? place : base.appending(place)
      guard
        let state = try? ReadState.states(of: directory, at: [nil], path, notesDamage: false)[0]
      else { return before.completions(options) }
      return before.completions(
        options + PathCompletion.candidates(for: word, in: state.root.node(at: path)))
    }
  }
}
