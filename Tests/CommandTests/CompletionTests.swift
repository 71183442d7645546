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
    #expect(try complete("get", "db", "/users/") == ["/users/a b", "/users/ada/", "/users/bob"])
    #expect(try complete("get", "db", "/users/b") == ["/users/bob"])
    #expect(try complete("get", "--at", "1", "db", "/users/ada/a") == ["/users/ada/age"])
    #expect(try complete("get", "db", "/x") == [])
    #expect(try complete("get", "db", "--sha") == ["--shallow"])
    #expect(try complete("log", "db", "--foll") == ["--follow"])
    #expect(try complete("completion", "z") == ["zsh"])
    try folder.write("{}", to: "cities.json")
    #expect(try complete("import", "db", "/", "cit") == ["cities.json"])
  }

  private static let fish = "/usr/bin/fish"

  /// What fish completes a line to, without descriptions.
  private func completeInFish(_ line: String) throws -> [String] {
    let script = """
      cd '\(folder.path)'
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
    // Where the shell is there, it takes the script.
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
    #expect(page.hasPrefix(".TH DENDRO 1"))
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
        ["-man", "-Tutf8", "-ww", "dendro.1"], executable: "/usr/bin/groff")
      #expect(troff.status == 0 && troff.errors.isEmpty, "\(troff.errors)")
      #expect(troff.output.contains("users"))
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
