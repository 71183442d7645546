import DendroEngine
import DendroStorage
import DendroTree
import Synchronization

/// A prompt: lines become verbs.
final class Shell {
  private let arguments: Arguments
  private let directory: String
  private var location = Path.root
  /// What is read in place of the present.
  private var point: String?
  private var printsTime = false
  private var lineNumber = 0
  private var code = ExitCode.success

  private static let ownVerbs = ["cd", "ls", "tree", "pwd", "at", "\\timing", "help", "quit"]
  /// Verbs of the table that make no sense in here.
  private static let excluded: Set = ["shell", "demo", "demo-writer", "serve", "complete-path"]
  /// Verbs that may remove files, which they do not while this reads them.
  private static let removing: Set = ["purge", "checkpoint"]

  init(_ arguments: Arguments) throws {
    self.arguments = arguments
    directory = try arguments.directoryPath()
  }

  private static var verbs: [Command] {
    CommandLineTool.commands.filter { command in
      !excluded.contains(command.name)
        && command.parameters.first?.name == Command.Parameter.directory.name
    }
  }

  /// All that a line may begin with.
  static var allVerbs: [String] { verbs.map(\.name) + ownVerbs }

  func run() throws -> ExitCode {
    SharedEngine.share(directory)
    defer { SharedEngine.share(nil) }
    guard Platform.isTerminal(0), Platform.isTerminal(1) else { return try runScript() }
    let editor = LineEditor(Self.proposer(directory))
    defer { editor.close() }
    while let line = editor.line(prompt) {
      do {
        guard try take(line) else { break }
      } catch {
        let failure = Failure(describing: error)
        Terminal.note(failure.message)
        if let hint = failure.hint { Terminal.note("  \(hint)") }
      }
      Interruption.reset()
      Self.position.withLock { $0 = location }
    }
    return .success
  }

  private var prompt: String { "\(location)\(point.map { " @\($0)" } ?? "")> " }

  private func runScript() throws -> ExitCode {
    while let line = readLine() {
      lineNumber += 1
      do {
        guard try take(line) else { break }
      } catch {
        var failure = Failure(describing: error)
        failure.message = "line \(lineNumber): \(failure.message)"
        throw failure
      }
    }
    return code
  }

  /// Does what a line says.
  ///
  /// - Returns: false if the shell ends.
  private func take(_ line: String) throws -> Bool {
    let words = try ShellWords.split(line)
    guard let verb = words.first, !verb.hasPrefix("#") else { return true }
    if verb == "quit" || verb == "exit" { return false }
    let start = Platform.uptime()
    let isTimed = printsTime
    try run(verb, Array(words.dropFirst()))
    if isTimed, printsTime {
      Terminal.note("time: \(Format.seconds(Double(Platform.uptime() - start) / 1e9))")
    }
    return true
  }

  private func run(_ verb: String, _ given: [String]) throws {
    let words = try given.map { try isChild($0) ? "./" + $0 : $0 }
    let limits = ["cd": 1, "ls": 1, "tree": 2, "pwd": 0, "at": 1, "\\timing": 0, "help": 1]
    if let limit = limits[verb], words.count > limit {
      throw Failure.usage("there is one word too many: \(Failure.quoted(words[limit]))")
    }
    if limits[verb] != nil, let option = words.first(where: { $0.hasPrefix("-") && $0 != "-" }) {
      throw Failure.usage(
        "\(verb) takes no option, as \(Failure.quoted(option))",
        hint: "a path that begins with - is written ./-…")
    }
    code = .success
    switch verb {
    case "cd": location = try resolved(words.first ?? "/")
    case "pwd": try print("\(location)")
    case "ls": try list(resolved(words.first))
    case "tree":
      let depth = words.count > 1 ? Int(words[1]) : 3
      guard let depth, (1...32).contains(depth) else {
        throw Failure.usage("N is a whole number from 1 to 32")
      }
      try tree(resolved(words.first), depth)
    case "at": try travel(words.first)
    case "\\timing", "timing":
      printsTime.toggle()
      Terminal.note(printsTime ? "the time of each line is printed" : "times are not printed")
    case "help":
      if let name = words.first {
        try print(Help.page(for: command(name), columns: Help.columns()))
      } else {
        let columns = Help.columns()
        let names = "Verbs: " + Self.verbs.map(\.name).joined(separator: " ")
        try print(
          Help.page(for: .shell, columns: columns) + "\n" + names.filled(to: columns - 1))
      }
    default: try pass(command(verb), words)
    }
  }

  /// Whether a word that looks like an option begins with a child of the prompt's location, as the keys of
  /// `childByAutoId()` do.
  private func isChild(_ word: String) throws -> Bool {
    guard word.hasPrefix("-"), !word.hasPrefix("--"), word.utf8.count > 2,
      let first = word.split(separator: "/").first, let key = try? Key(String(first))
    else { return false }
    return try !node(at: location).child(key).isEmpty
  }

  private func command(_ name: String) throws -> Command {
    if let command = Self.verbs.first(where: { $0.name == name }) { return command }
    let near = suggestion(for: name, among: Self.verbs.map(\.name) + Self.ownVerbs)
    throw Failure.usage(
      "there is no verb \(Failure.quoted(name))",
      hint: near.map { "did you mean '\($0)'?" } ?? "help lists them")
  }

  /// Runs a verb of the table on this database.
  private func pass(_ command: Command, _ words: [String]) throws {
    var arguments = try Arguments([directory] + words, for: command)
    if arguments.wantsHelp { return try print(Help.page(for: command, columns: Help.columns())) }
    for (index, parameter) in command.parameters.enumerated() where parameter.name == "PATH" {
      let given = arguments.positional(index)
      // As it was given: an empty part is not there any more in the absolute path.
      if command.writes, given != nil { try Location.checkWriting(given) }
      if given != nil || (parameter.isOptional && !location.isRoot) {
        try arguments.setPositional(index, absolute(given))
      }
    }
    if let point, command.options.contains(where: { $0.name == "at" }), !arguments.has("at") {
      arguments.setValue("at", point)
    }
    if let color = self.arguments.value("color"), !arguments.has("color") {
      arguments.setValue("color", color)
    }
    if Self.removing.contains(command.name) { SharedEngine.release() }
    code = try command.run(arguments)
  }

  // MARK: Locations

  /// A path relative to the prompt, as text; it may end in .priority.
  private func absolute(_ text: String?) throws -> String {
    guard let text else { return "\(location)" }
    guard !text.isEmpty else { throw Location.refusal("PATH is empty") }
    var keys = text.startsLiterally(with: "/") ? [] : location.keys.map(\.string)
    for part in text.utf8.split(separator: UInt8(ascii: "/")).map({ String($0) ?? "" }) {
      switch part {
      case ".": break
      case "..": _ = keys.popLast()
      default: keys.append(part)
      }
    }
    return "/" + keys.joined(separator: "/")
  }

  private func resolved(_ text: String?) throws -> Path { try Location(absolute(text)).path }

  private func node(at path: Path) throws -> Node {
    let point = try self.point.flatMap { text in
      try HistoryPoint(Arguments([directory, "--at", text], for: .get), "at")
    }
    return try ReadState.states(of: directory, at: [point], path)[0].root.node(at: path)
  }

  private func travel(_ text: String?) throws {
    guard let text, text != "now" else { return point = nil }
    let wanted = try HistoryPoint(Arguments([directory, "--at", text], for: .get), "at")
    let lsn = try ReadState.states(of: directory, at: [wanted])[0].lsn
    // A time is fixed: it would be another one later.
    point = "\(lsn)"
    Terminal.note("as it was after write \(lsn)")
  }

  // MARK: Output

  private func print(_ text: String) throws {
    let terminal = try Terminal(color: arguments.value("color"))
    try terminal.print(text)
    try terminal.flush()
  }

  private func list(_ path: Path) throws {
    let node = try node(at: path)
    let terminal = try Terminal(color: arguments.value("color"))
    if node.isEmpty { try noteNothing(at: path) }
    if node.isLeaf { try terminal.print(line("\(path)", node, terminal)) }
    for (key, child) in node.children { try terminal.print(line(key.string, child, terminal)) }
    try terminal.flush()
  }

  private func noteNothing(at path: Path) throws {
    code = .problem
    Terminal.note("there is nothing at \(path)")
  }

  private func line(_ name: String, _ node: Node, _ terminal: Terminal) -> String {
    var lines = LogLines(terminal: terminal, isJSON: false)
    let name = name.printable
    lines.valueWidth = max(10, (Terminal.columns ?? 120) - name.columnCount - 4)
    return node.isBranch
      ? terminal.colored(name + "/", .cyan) + "  "
        + (node.childCount == 1 ? "1 child" : "\(Format.count(node.childCount)) children")
      : terminal.colored(name, .cyan) + "  " + lines.preview(node)
  }

  private func tree(_ path: Path, _ depth: Int) throws {
    let node = try node(at: path)
    if node.isEmpty { return try noteNothing(at: path) }
    let terminal = try Terminal(color: arguments.value("color"))
    try terminal.print(terminal.colored("\(path)", .cyan))
    try printChildren(of: node, depth: depth, indent: "", terminal)
    try terminal.flush()
  }

  /// As many children of a node as a tree shows.
  private static let childLimit = 50

  private func printChildren(of node: Node, depth: Int, indent: String, _ terminal: Terminal)
    throws
  {
    var count = 0
    for (key, child) in node.children {
      count += 1
      let isLast = count == node.childCount
      if count > Self.childLimit {
        let rest = Format.count(node.childCount - Self.childLimit)
        return try terminal.print(indent + "└── … \(rest) more")
      }
      try terminal.print(indent + (isLast ? "└── " : "├── ") + line(key.string, child, terminal))
      if depth > 1 {
        let deeper = indent + (isLast ? "    " : "│   ")
        try printChildren(of: child, depth: depth - 1, indent: deeper, terminal)
      }
    }
  }
}
