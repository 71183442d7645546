import Foundation
import Testing

@Suite("dendro: completion, manual, version")
struct CompletionTests {
  private let dendro: Tool
  private var folder: Folder { dendro.folder }
  init() throws { dendro = Tool(folder: try Folder()) }

  /// What bash completes the words to, of which the last one is begun.
  private func complete(_ words: String...) throws -> [String] {
    let list = words.map { "'\($0)'" }.joined(separator: " ")
    let script = """
      cd '\(folder.path)'
      export HOME="$PWD"
      dendro() { '\(Tool.path)' "$@"; }
      source <(dendro completion bash)
      COMP_WORDS=(dendro \(list)); COMP_CWORD=\(words.count)
      _dendro
      printf '%s\\n' "${COMPREPLY[@]}"
      """
    let outcome = try dendro.run(["-c", script], executable: "/bin/bash")
    #expect(outcome.errors.isEmpty, "\(outcome.errors)")
    return outcome.lines.map(String.init)
  }

  @Test("bash completes verbs, options, directories, files and paths")
  func bash() throws {
    try dendro("set", "db", "/users", #"{"ada":{"age":36},"bob":1,"a b":2}"#)
    #expect(try complete("ge") == ["get"])
    #expect(try complete("ex") == ["export"])
    #expect(Set(try complete("in")) == ["increment", "info"])
    #expect(try complete("get", "d") == ["db"])
    #expect(try complete("get", "db", "/u") == ["/users/"])
    #expect(try complete("get", "db", "") == ["/users/"])
    #expect(
      try complete("get", "db", "/users/") == [#"/users/a\ b"#, "/users/ada/", "/users/bob"])
    #expect(try complete("get", "db", #""/users/a"#) == ["/users/a b", "/users/ada/"])
    #expect(try complete("get", "db", #"/users/a\ "#) == [#"/users/a\ b"#])
    #expect(try complete("get", "db", "/users/b") == ["/users/bob"])
    #expect(try complete("get", "--at", "1", "db", "/users/ada/a") == ["/users/ada/age"])
    // Readline hands over words that are split at = and :.
    #expect(try complete("get", "--at", "=", "1", "db", "/users/b") == ["/users/bob"])
    #expect(
      try complete("get", "--at", "2026-11-21T04", ":", "00", "db", "/users/b") == ["/users/bob"])
    try dendro("set", "db", "/a:b", #"{"c":1}"#)
    #expect(try complete("get", "db", "/a", ":", "b/") == ["b/c"])
    #expect(try complete("get", "db", "/x") == [])
    #expect(try complete("get", "db", "--sha") == ["--shallow"])
    #expect(try complete("log", "db", "--foll") == ["--follow"])
    #expect(try complete("completion", "z") == ["zsh"])
    try folder.write("{}", to: "cities.json")
    #expect(try complete("import", "db", "/", "cit") == ["cities.json"])
    #expect(try complete("export", "db", "-o", "cit") == ["cities.json"])
    #expect(try complete("export", "db", "--output", "=", "cit") == ["cities.json"])
    #expect(try complete("get", "db", "--color", "al") == ["always"])
    // The directory as it was typed.
    try dendro("set", "my db", "/users/bob", "1")
    #expect(try complete("get", "my") == ["my db"])
    for directory in [#"my\ db"#, "\"my db\"", #"~/my\ db"#] {
      #expect(try complete("get", directory, "/users/b") == ["/users/bob"], "\(directory)")
    }
  }

  private static let zsh = "/usr/bin/zsh"

  /// What zsh completes each of the lines to, in a terminal of its own.
  private func completeInZsh(_ lines: [String]) throws -> [String] {
    try folder.write(
      """
      PS1= HOME=$PWD
      autoload -Uz compinit; compinit -D -u
      dendro() { '\(Tool.path)' "$@" }
      source <(dendro completion zsh)
      show() { zle complete-word; print -r -- "$BUFFER" >> shown; BUFFER=; print -n SHOWN }
      zle -N show; bindkey '^I' show
      print RE''ADY
      """, to: "inner")
    try folder.write(lines.map { "\($0)\n" }.joined(), to: "lines")
    let script = #"""
      cd "$0"
      zmodload zsh/zpty
      zpty shell "zsh -f -i"
      zpty -w shell "source inner"
      zpty -r shell text '*READY*'
      while IFS= read -r line; do
        zpty -w -n shell "$line"$'\t'
        zpty -r shell text '*SHOWN*'
      done < lines
      zpty -w shell exit
      zpty -d shell
      cat shown
      """#
    let outcome = try dendro.run(["-f", "-c", script, folder.path], executable: Self.zsh)
    #expect(outcome.errors.isEmpty, "\(outcome.errors)")
    return outcome.lines.map { String($0).trimmingCharacters(in: .whitespaces) }
  }

  @Test("zsh completes verbs, options, directories, files and paths")
  func zsh() throws {
    guard FileManager.default.isExecutableFile(atPath: Self.zsh) else {
      print("completion in zsh: NOT RUN: no \(Self.zsh)")
      return
    }
    try dendro("set", "db", "/users", #"{"ada":{"age":36},"bob":1,"a b":2,"x:y":{"z":1}}"#)
    try dendro("set", "my db", "/users/bob", "1")
    try folder.write("{}", to: "cities.json")
    let lines = [
      ("dendro ge", "dendro get"), ("dendro get d", "dendro get db/"),
      ("dendro get db /us", "dendro get db /users/"),
      // Values of options are neither the directory nor the path.
      ("dendro get --at 5 db /us", "dendro get --at 5 db /users/"),
      ("dendro get --at=5 db /users/b", "dendro get --at=5 db /users/bob"),
      ("dendro get -r db /users/ada/a", "dendro get -r db /users/ada/age"),
      ("dendro get db --at 5 /users/b", "dendro get db --at 5 /users/bob"),
      ("dendro get db --order-by key /users/b", "dendro get db --order-by key /users/bob"),
      (#"dendro get db /users/a\ "#, #"dendro get db /users/a\ b"#),
      ("dendro get db /users/x", "dendro get db /users/x:y/"),
      (#"dendro get my\ db /users/b"#, #"dendro get my\ db /users/bob"#),
      (#"dendro get ~/my\ db /users/b"#, #"dendro get ~/my\ db /users/bob"#),
      ("dendro get db /none/x", "dendro get db /none/x"),
      ("dendro get db --sha", "dendro get db --shallow"),
      ("dendro get db --color al", "dendro get db --color always"),
      ("dendro export db -o ci", "dendro export db -o cities.json"),
      ("dendro import db / ci", "dendro import db / cities.json"),
      ("dendro completion z", "dendro completion zsh"),
    ]
    #expect(try completeInZsh(lines.map(\.0)) == lines.map(\.1))
  }

  private static let fish = "/usr/bin/fish"

  /// What fish completes a line to, without descriptions.
  private func completeInFish(_ line: String) throws -> [String] {
    let script = """
      cd '\(folder.path)'
      set -gx HOME $PWD
      function dendro; '\(Tool.path)' $argv; end
      dendro completion fish | source
      complete -C'\(line)'
      """
    let outcome = try dendro.run(["--no-config", "-c", script], executable: Self.fish)
    #expect(outcome.errors.isEmpty, "\(outcome.errors)")
    return outcome.lines.map { String($0.prefix { $0 != "\t" }) }
  }

  @Test("fish completes verbs, options, directories, files and paths")
  func fish() throws {
    guard FileManager.default.isExecutableFile(atPath: Self.fish) else {
      print("completion in fish: NOT RUN: no \(Self.fish)")
      return
    }
    try dendro("set", "db", "/users", #"{"ada":{"age":36},"bob":1,"a b":2}"#)
    #expect(try completeInFish("dendro ge") == ["get"])
    #expect(try completeInFish("dendro ex") == ["export"])
    #expect(Set(try completeInFish("dendro in")) == ["increment", "info"])
    #expect(try completeInFish("dendro get d") == ["db/"])
    #expect(try completeInFish("dendro get db /u") == ["/users/"])
    #expect(
      try completeInFish("dendro get db /users/") == ["/users/a b", "/users/ada/", "/users/bob"])
    // Values of options are neither the directory nor the path.
    for line in [
      "get --at 1 db /users/b", "get db --at 1 /users/b", "get --order-by key db /users/b",
    ] {
      #expect(try completeInFish("dendro \(line)") == ["/users/bob"], "\(line)")
    }
    #expect(try completeInFish("dendro get --at=1 --raw db /users/ada/a") == ["/users/ada/age"])
    #expect(try completeInFish("dendro get db /x") == [])
    #expect(try completeInFish("dendro get db --sha") == ["--shallow"])
    #expect(try completeInFish("dendro completion z") == ["zsh"])
    try folder.write("{}", to: "cities.json")
    #expect(try completeInFish("dendro import db / cit") == ["cities.json"])
    #expect(try completeInFish("dendro export db -o cit") == ["cities.json"])
    #expect(try completeInFish("dendro get db --color al") == ["always"])
    try dendro("set", "my db", "/users/bob", "1")
    for directory in [#"my\ db"#, #"~/my\ db"#] {
      #expect(try completeInFish("dendro get \(directory) /users/b") == ["/users/bob"])
    }
  }

  @Test("the scripts of all shells know every verb and option", arguments: ["bash", "zsh", "fish"])
  func scripts(shell: String) throws {
    let script = try dendro("completion", shell)
    #expect(script.status == 0)
    for verb in UsageTests.verbs + ["repair", "diff", "blame", "apply", "completion"] {
      #expect(script.output.contains(verb), "\(verb)")
    }
    for option in ["order-by", "salvage", "atomic", "color"] {
      #expect(script.output.contains(option))
    }
    #expect(!script.output.contains("demo-writer"))
    // If the shell is there, it takes the script.
    let path = "/usr/bin/\(shell)"
    if FileManager.default.isExecutableFile(atPath: path) {
      try folder.write(script.output, to: "script")
      let check = try dendro.run(["-n", "script"], executable: path)
      #expect(check.status == 0 && check.errors.isEmpty, "\(check.errors)")
    }
  }

  @Test("another shell is refused")
  func otherShell() throws {
    let outcome = try dendro("completion", "csh")
    #expect(outcome.status == 64 && outcome.errors.contains("bash, zsh or fish"))
    #expect(try dendro("completion").status == 64)
  }

  @Test("the manual has every verb and option of the table, and troff takes it")
  func manual() throws {
    let page = try dendro("manual").output
    let heading = #/\.TH DENDRO 1 "20\d\d-\d\d-\d\d" "dendro /#
    #expect(page.prefixMatch(of: heading) != nil)
    let dated = try dendro("manual", environment: ["SOURCE_DATE_EPOCH": "1700000000"]).output
    #expect(dated.hasPrefix(".TH DENDRO 1 \"2023-11-14\" "))
    #expect(page.split(separator: "\n").dropFirst() == dated.split(separator: "\n").dropFirst())
    #expect(try dendro("manual", environment: ["SOURCE_DATE_EPOCH": "soon"]).output == page)
    for verb in UsageTests.verbs {
      #expect(page.contains(".SS \"\(verb) "), "\(verb)")
      let help = try dendro(verb, "--help").output
      for match in help.matches(of: /--([a-z-]+)/) {
        #expect(page.contains("\\-\\-" + match.1.replacing("-", with: "\\-")), "\(match.1)")
      }
    }
    #expect(page.contains(".SH EXIT STATUS") && page.contains(".B 75"))
    // No line is taken for a request that it is not.
    for line in page.split(separator: "\n") where line.hasPrefix(".") {
      #expect(
        line.contains(/^\.(TH|SH|SS|TP|PP|B|I|RI|RS|RE|nf|fi|br)\b/), "\(line)")
    }
    try folder.write(page, to: "dendro.1")
    if FileManager.default.isExecutableFile(atPath: "/usr/bin/groff") {
      let troff = try dendro.run(
        ["-man", "-Tutf8", "-P-cbou", "-ww", "dendro.1"], executable: "/usr/bin/groff")
      #expect(troff.status == 0 && troff.errors.isEmpty, "\(troff.errors)")
      #expect(troff.output.contains("users"))
      // Lines of JSON, and a table, stand as they are; the text behind them begins a line.
      let lines = troff.lines.map { $0.trimmingCharacters(in: .whitespaces) }
      #expect(lines.contains(#"{"operation": "increment", "path": "/count", "delta": 5}"#))
      #expect(lines.contains("pwd               where the prompt is"))
      #expect(lines.contains { $0.hasPrefix("Other") && $0.contains("members") })
      // What every verb takes is said once.
      #expect(lines.filter { $0.hasPrefix("--color WHEN") }.count == 1)
    }
  }

  @Test("--version names the format of the files")
  func version() throws {
    let outcome = try dendro("--version")
    #expect(outcome.status == 0)
    #expect(
      outcome.output.contains(/^dendro \S+\nreads and writes format \d+\n$/), "\(outcome.output)")
    let json = try dendro("--version", "--json").object
    #expect(json["version"] is String && json["format"] is Int)
    #expect(try dendro("--version", "--jason").status == 64)
  }
}
