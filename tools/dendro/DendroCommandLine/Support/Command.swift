/// A verb: what it takes, what it says about itself, what it does.
struct Command: Sendable {
  struct Parameter: Sendable {
    var name: String
    var summary: String
    var isOptional = false
  }

  struct Option: Sendable {
    /// Without the dashes.
    var name: String
    var short: Character? = nil
    /// What stands for the option's value; nil if it takes none.
    var value: String? = nil
    var summary: String
  }

  struct Example: Sendable {
    var line: String
    var summary: String
  }

  var name: String
  var summary: String
  /// What the summary has no room for.
  var discussion: String = ""
  var parameters: [Parameter] = []
  var options: [Option] = []
  var examples: [Example] = []
  /// Left out of the list of verbs.
  var isHidden = false
  var run: @Sendable (Arguments) throws -> ExitCode

  /// Whether it writes to the database.
  var writes: Bool { options.contains { $0.name == Option.durability.name } }
}

extension Command.Parameter {
  static let directory = Self(name: "DIRECTORY", summary: "the database's directory")
  static let path = Self(name: "PATH", summary: "a location, as /a/b; / is the root")
  static let optionalPath = Self(
    name: "PATH", summary: "a location, as /a/b; the root if left out", isOptional: true)
}

extension Command.Option {
  static let json = Self(name: "json", summary: "print JSON for programs")
  static let force = Self(name: "force", short: "f", summary: "do not ask before destroying data")
  static let dryRun = Self(name: "dry-run", short: "n", summary: "only say what would be done")
  static let noCreate = Self(
    name: "no-create", summary: "end with exit code 1 if there is no database")
  static let durability = Self(
    name: "durability", value: "LEVEL",
    summary: "every-commit (default), none, or interval:MS: what power loss may take")
  static let wait = Self(
    name: "wait", value: "SECONDS",
    summary:
      "wait so long for another process to close the database, instead of ending with exit code 75")
  static let color = Self(
    name: "color", value: "WHEN", summary: "auto (default), always or never")
  static let help = Self(name: "help", short: "h", summary: "show this help")
}
