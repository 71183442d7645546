// Paths are offered with their special characters quoted, unless the word begins with a quote. `compgen` splits
// its words at line feeds only, so that a space in a name does no harm.

extension CompletionScript {
  static func bash(_ commands: [Command]) -> String {
    let names = commands.map(\.name).joined(separator: #"\n"#)
    let cases = commands.map { command in
      let options = options(command)
      let names = options.map { "--\($0.name)" }.joined(separator: #"\n"#)
      var words = ["options=$'\(names)'", "valued=' \(valued(options)) '"]
      for (variable, kind) in [("files", Kind.file), ("folders", .directory)] {
        let found = valued(options, kind)
        if !found.isEmpty { words.append("\(variable)=' \(found) '") }
      }
      let kinds = command.parameters.map { kind($0).rawValue }.joined(separator: #"\n"#)
      words.append("kinds=$'\(kinds)'")
      return "    \(command.name)) \(words.joined(separator: " ")) ;;"
    }
    return #"""
      # bash completion for dendro
      _dendro() {
        local IFS=$'\n' words=() isJoined='' word
        # Readline splits words at = and :. Here they are joined again.
        for word in "${COMP_WORDS[@]:0:COMP_CWORD+1}"; do
          if [[ ${#words[@]} -gt 1 && ( -n $isJoined || $word =~ ^[=:]+$ ) ]]; then
            words[-1]+=$word
            [[ $word =~ ^[=:]+$ ]] && isJoined=1 || isJoined=''
          else
            words+=("$word")
          fi
        done
        local last=$((${#words[@]} - 1)) verb=${words[1]}
        local cur=${words[last]} option='' kept='' quote=''
        # Readline replaces only what is behind the last = or :.
        if [[ $cur != "${COMP_WORDS[COMP_CWORD]}" ]]; then
          kept=$cur
          [[ ${COMP_WORDS[COMP_CWORD]} =~ ^[=:]+$ ]] || kept=${cur%"${COMP_WORDS[COMP_CWORD]}"}
        fi
        COMPREPLY=()
        if [[ $last -eq 1 ]]; then
          COMPREPLY=($(compgen -W $'\#(names)\nhelp\n--help\n--version' -- "$cur"))
          return
        fi
        local options='' valued='' files='' folders='' kinds=''
        case $verb in
      \#(cases.joined(separator: "\n"))
        esac
        if [[ $valued == *" ${words[last - 1]} "* ]]; then
          option=${words[last - 1]}
        elif [[ $cur == --*=* ]]; then
          option=${cur%%=*}
          kept=${kept#"$option="} cur=${cur#*=}
        elif [[ $cur == -* ]]; then
          COMPREPLY=($(compgen -W "$options" -- "$cur"))
          return
        fi
        if [[ -n $option ]]; then
          if [[ $option == --color ]]; then
            COMPREPLY=($(compgen -W $'auto\nalways\nnever' -- "$cur"))
          elif [[ $files == *" $option "* ]]; then
            COMPREPLY=($(compgen -f -- "$cur")) && compopt -o filenames 2>/dev/null
          elif [[ $folders == *" $option "* ]]; then
            COMPREPLY=($(compgen -d -- "$cur")) && compopt -o filenames 2>/dev/null
          fi
          COMPREPLY=("${COMPREPLY[@]#"$kept"}")
          return
        fi
        local index count=0 directory='' isEnded=''
        for ((index = 2; index < last; index++)); do
          word=${words[index]}
          if [[ -z $isEnded && $word == -- ]]; then
            isEnded=1
          elif [[ -z $isEnded && $valued == *" $word "* ]]; then
            index=$((index + 1))
          elif [[ -n $isEnded || $word != -?* ]]; then
            count=$((count + 1))
            [[ $count -eq 1 ]] && directory=$word
          fi
        done
        local all=($kinds)
        case ${all[count]} in
          directory) COMPREPLY=($(compgen -d -- "$cur")); compopt -o filenames 2>/dev/null ;;
          file) COMPREPLY=($(compgen -f -- "$cur")); compopt -o filenames 2>/dev/null ;;
          shell) COMPREPLY=($(compgen -W $'bash\nzsh\nfish' -- "$cur")) ;;
          path)
            [[ $cur == [\"\']* ]] && quote=${cur:0:1} cur=${cur:1}
            [[ -z $quote ]] && cur=${cur//\\/}
            COMPREPLY=($(dendro complete-path "${directory//[\\\"\']/}" "$cur" 2>/dev/null))
            [[ -z $quote ]] && for index in "${!COMPREPLY[@]}"; do
              printf -v COMPREPLY[index] %q "${COMPREPLY[index]}"
            done
            compopt -o nospace 2>/dev/null
            ;;
        esac
        COMPREPLY=("${COMPREPLY[@]#"$kept"}")
      }
      complete -F _dendro dendro
      """#
  }
}
