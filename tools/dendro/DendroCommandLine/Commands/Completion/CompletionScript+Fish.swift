extension CompletionScript {
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
          + (option.short.map { " -s \($0)" } ?? "")
          + (option.value == nil ? "" : " -r \(action(kind(option)))")
          + " -d \(quoted(option.summary))\n"
      }
      for (index, parameter) in command.parameters.enumerated() {
        let action = action(kind(parameter))
        guard !action.isEmpty else { continue }
        text += "complete -c dendro -n '\(seen); and __dendro_parameter \(index + 1)' \(action)\n"
      }
    }
    return String(text.dropLast())
  }

  private static func action(_ kind: Kind) -> String {
    switch kind {
    case .directory: "-a '(__fish_complete_directories)'"
    case .file: "-F"
    case .path: "-a '(__dendro_paths)'"
    case .shell: "-a 'bash zsh fish'"
    case .color: "-a 'auto always never'"
    case .none: ""
    }
  }
}
