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

/// The scripts, made from the table of verbs.
private enum CompletionScript {
  /// What a parameter is completed with.
  private static func kind(_ parameter: Command.Parameter) -> String {
    switch parameter.name {
    case "DIRECTORY", "TARGET", "OTHER": "directory"
    case "PATH": "path"
    case "FILE", "FILE|URL": "file"
    case "SHELL": "shell"
    default: "none"
    }
  }

  private static func quoted(_ text: String) -> String {
    "'" + text.replacing("'", with: #"'\''"#) + "'"
  }

  private static func options(_ command: Command) -> [Command.Option] {
    command.options + [.color, .help]
  }

  private static func words(_ options: [Command.Option]) -> String {
    options.map { "--\($0.name)" }.joined(separator: " ")
  }

  /// The options after which a word is their value.
  private static func valued(_ options: [Command.Option]) -> String {
    options.filter { $0.value != nil }.flatMap { option in
      ["--\(option.name)"] + (option.short.map { ["-\($0)"] } ?? [])
    }.joined(separator: " ")
  }

  static func bash(_ commands: [Command]) -> String {
    var text = """
      # bash completion for dendro
      _dendro() {
        local cur=${COMP_WORDS[COMP_CWORD]} verb=${COMP_WORDS[1]} options='' valued='' kinds=''
        COMPREPLY=()
        if [[ $COMP_CWORD -eq 1 ]]; then
          COMPREPLY=($(compgen -W '\(commands.map(\.name).joined(separator: " ")) help --help --version' -- "$cur"))
          return
        fi
        case $verb in

      """
    for command in commands {
      let options = options(command)
      text +=
        "    \(command.name)) options='\(words(options))' valued='\(valued(options))' kinds='\(command.parameters.map(kind).joined(separator: " "))' ;;\n"
    }
    text += """
        esac
        if [[ $cur == -* ]]; then
          COMPREPLY=($(compgen -W "$options" -- "$cur"))
          return
        fi
        local index=2 count=0 directory='' word
        while [[ $index -lt $COMP_CWORD ]]; do
          word=${COMP_WORDS[index]}
          if [[ " $valued " == *" $word "* ]]; then
            index=$((index + 1))
            if [[ $index -eq $COMP_CWORD ]]; then COMPREPLY=($(compgen -f -- "$cur")); return; fi
          elif [[ $word != -* ]]; then
            count=$((count + 1))
            [[ $count -eq 1 ]] && directory=$word
          fi
          index=$((index + 1))
        done
        local all=($kinds)
        case ${all[count]} in
          directory) COMPREPLY=($(compgen -d -- "$cur")); compopt -o filenames 2>/dev/null ;;
          file) COMPREPLY=($(compgen -f -- "$cur")); compopt -o filenames 2>/dev/null ;;
          shell) COMPREPLY=($(compgen -W 'bash zsh fish' -- "$cur")) ;;
          path)
            local IFS=$'\\n'
            COMPREPLY=($(dendro complete-path "$directory" "$cur" 2>/dev/null))
            compopt -o nospace 2>/dev/null
            ;;
        esac
      }
      complete -F _dendro dendro
      """
    return text
  }

  static func zsh(_ commands: [Command]) -> String {
    func escaped(_ text: String) -> String {
      text.replacing("\\", with: "\\\\").replacing(":", with: "\\:").replacing("[", with: "\\[")
        .replacing("]", with: "\\]")
    }
    var text = """
      #compdef dendro
      # zsh completion for dendro
      _dendro_path() {
        local -a found
        found=("${(@f)$(dendro complete-path "${words[3]}" "$PREFIX" 2>/dev/null)}")
        compadd -S '' -Q -- $found
      }
      _dendro() {
        if (( CURRENT == 2 )); then
          local -a verbs
          verbs=(

      """
    for command in commands {
      text += "      \(quoted("\(command.name):\(escaped(command.summary))"))\n"
    }
    text += """
          )
          _describe verb verbs
          return
        fi
        case ${words[2]} in

      """
    for command in commands {
      text += "    \(command.name)) _arguments -s '2:verb: '"
      for option in options(command) {
        text +=
          " \(quoted("--\(option.name)\(option.value == nil ? "" : "=")[\(escaped(option.summary))]\(option.value.map { ":\($0):_files" } ?? "")"))"
      }
      for (index, parameter) in command.parameters.enumerated() {
        let action =
          switch kind(parameter) {
          case "directory": "_files -/"
          case "file": "_files"
          case "path": "_dendro_path"
          case "shell": "(bash zsh fish)"
          default: " "
          }
        // Words are counted from the verb on.
        let colon = parameter.isOptional ? "::" : ":"
        text += " \(quoted("\(index + 2)\(colon)\(parameter.name):\(action)"))"
      }
      text += " ;;\n"
    }
    text += """
        esac
      }
      if [[ ${zsh_eval_context[-1]} == loadautofunc ]]; then _dendro "$@"; else compdef _dendro dendro; fi
      """
    return text.replacing(" '2:verb: '", with: "")
  }

  static func fish(_ commands: [Command]) -> String {
    let names = commands.map(\.name).joined(separator: " ")
    var text = """
      # fish completion for dendro
      function __dendro_words
        # The verb, and behind it what is neither an option nor the value of one.
        set -l words (commandline -opc)
        set -e words[1]
        set -l valued
        switch "$words[1]"

      """
    for command in commands {
      text += "    case \(command.name)\n      set valued \(valued(options(command)))\n"
    }
    text += """
        end
        set -l is_value 0
        for word in $words
          if test $is_value -eq 1
            set is_value 0
          else if contains -- $word $valued
            set is_value 1
          else if not string match -q -- '-?*' $word
            echo $word
          end
        end
      end
      function __dendro_paths
        set -l words (__dendro_words)
        set -q words[2]; and dendro complete-path $words[2] (commandline -ct) 2>/dev/null
      end
      function __dendro_parameter
        # Whether this one comes next, counted from 1.
        test (count (__dendro_words)) -eq $argv[1]
      end
      complete -c dendro -f
      complete -c dendro -n 'not __fish_seen_subcommand_from \(names)' -l version -d 'show the version'

      """
    for command in commands {
      let seen = "__fish_seen_subcommand_from \(command.name)"
      text +=
        "complete -c dendro -n 'not __fish_seen_subcommand_from \(names)' -a \(command.name) -d \(quoted(command.summary))\n"
      for option in options(command) {
        text +=
          "complete -c dendro -n '\(seen)' -l \(option.name)"
          + (option.short.map { " -s \($0)" } ?? "") + (option.value == nil ? "" : " -r")
          + " -d \(quoted(option.summary))\n"
      }
      for (index, parameter) in command.parameters.enumerated() {
        let action =
          switch kind(parameter) {
          case "directory": "-a '(__fish_complete_directories)'"
          case "file": "-F"
          case "path": "-a '(__dendro_paths)'"
          case "shell": "-a 'bash zsh fish'"
          default: ""
          }
        guard !action.isEmpty else { continue }
        text += "complete -c dendro -n '\(seen); and __dendro_parameter \(index + 1)' \(action)\n"
      }
    }
    return String(text.dropLast())
  }
}
