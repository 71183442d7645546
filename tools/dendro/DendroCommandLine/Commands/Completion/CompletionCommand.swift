import DendroTree

extension Command {
  static let completion = Command(
    name: "completion", summary: "print what makes a shell complete verbs, options and paths",
    discussion: """
      The script is for bash, zsh or fish. It completes verbs, options, directories, and the paths of the
      database that the line names.
      """,
    parameters: [Parameter(name: "SHELL", summary: "bash, zsh or fish")],
    examples: [
      Example(line: "source <(dendro completion bash)", summary: "for this shell"),
      Example(
        line: "dendro completion zsh > ~/.zfunc/_dendro", summary: "for zsh, in a folder of $fpath"),
      Example(
        line: "dendro completion fish > ~/.config/fish/completions/dendro.fish",
        summary: "for fish"),
    ],
    run: { arguments in
      let shells = [
        "bash": CompletionScript.bash, "zsh": CompletionScript.zsh,
        "fish": CompletionScript.fish,
      ]
      let word = arguments.positional[0]
      guard let script = shells[word] else {
        throw Failure.usage("SHELL is bash, zsh or fish, not \(Failure.quoted(word))")
      }
      let terminal = try Terminal(color: nil)
      try terminal.print(script(CommandLineTool.commands.filter { !$0.isHidden }))
      try terminal.flush()
      return .success
    })

  /// What the scripts ask for the paths of a database.
  static let completePath = Command(
    name: "complete-path", summary: "print the paths that begin as the given one",
    parameters: [.directory, .optionalPath], isHidden: true,
    run: { arguments in
      // Shells hand over the words as they were typed.
      var arguments = arguments
      arguments.setPositional(0, Platform.expandingHome(arguments.directory))
      let text = arguments.positional(1) ?? ""
      let parent = PathCompletion.parent(of: text)
      let node = try ReadState(arguments, path: parent.isEmpty ? "/" : parent).node
      let terminal = try Terminal(color: nil)
      for path in PathCompletion.candidates(for: text, in: node) {
        try terminal.print(parent.isEmpty ? "/" + path : path)
      }
      try terminal.flush()
      return .success
    })
}
