extension CompletionScript {
  static func zsh(_ commands: [Command]) -> String {
    let verbs = commands.map { command in
      "      " + quoted("\(command.name):\(escaped(command.summary))")
    }
    let cases = commands.map { command in
      let words =
        options(command).flatMap(specifications) + ["'1:VERB: '"]
        + command.parameters.enumerated().map { index, parameter in
          // The verb is the first word that `_arguments` counts.
          let colon = parameter.isOptional ? "::" : ":"
          return quoted("\(index + 2)\(colon)\(parameter.name):\(action(kind(parameter)))")
        }
      return "    \(command.name)) _arguments -S \(words.joined(separator: " ")) ;;"
    }
    return #"""
      #compdef dendro
      # zsh completion for dendro
      _dendro_path() {
        local -a found
        # The words that are no options, as _arguments has found them: the verb, and the directory.
        found=(${(f)"$(dendro complete-path "${(Q)line[2]}" "${(Q)PREFIX}" 2>/dev/null)"})
        compadd -S '' -- $found
      }
      _dendro() {
        if (( CURRENT == 2 )); then
          local -a verbs
          verbs=(
      \#(verbs.joined(separator: "\n"))
          )
          _describe verb verbs
          return
        fi
        local -a line
        case ${words[2]} in
      \#(cases.joined(separator: "\n"))
        esac
      }
      if [[ ${zsh_eval_context[-1]} == loadautofunc ]]; then _dendro "$@"; else compdef _dendro dendro; fi
      """#
  }

  private static func escaped(_ text: String) -> String {
    text.replacing("\\", with: "\\\\").replacing(":", with: "\\:").replacing("[", with: "\\[")
      .replacing("]", with: "\\]")
  }

  /// An option as `_arguments` takes it: one word for each of its spellings, each of which excludes the other.
  private static func specifications(_ option: Command.Option) -> [String] {
    let summary = "[\(escaped(option.summary))]"
    let isValued = option.value != nil
    let value = option.value.map { ":\(escaped($0)):\(action(kind(option)))" } ?? ""
    let long = "--\(option.name)"
    let others = option.short.map { "(\(long) -\($0))" } ?? ""
    let short = option.short.map { "\(others)-\($0)\(isValued ? "+" : "")\(summary)\(value)" }
    return [quoted("\(others)\(long)\(isValued ? "=" : "")\(summary)\(value)")]
      + (short.map { [quoted($0)] } ?? [])
  }

  private static func action(_ kind: Kind) -> String {
    switch kind {
    case .directory: "_files -/"
    case .file: "_files"
    case .path: "_dendro_path"
    case .shell: "(bash zsh fish)"
    case .color: "(auto always never)"
    case .none: " "
    }
  }
}
