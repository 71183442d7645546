/// The scripts that make shells complete, made from the table of verbs.
enum CompletionScript {
  /// What a word is completed with.
  enum Kind: String {
    case directory, path, file, shell, color, none
  }

  static func kind(_ parameter: Command.Parameter) -> Kind {
    switch parameter.name {
    case "DIRECTORY", "TARGET", "OTHER": .directory
    case "PATH": .path
    case "FILE": .file
    case "SHELL": .shell
    default: .none
    }
  }

  /// Of the value of an option that has one.
  static func kind(_ option: Command.Option) -> Kind {
    if option.name == Command.Option.color.name { return .color }
    return switch option.value {
    case "FILE", "FILE|URL": .file
    case "DIR", "FOLDER", "OTHER": .directory
    default: .none
    }
  }

  static func quoted(_ text: String) -> String {
    "'" + text.replacing("'", with: #"'\''"#) + "'"
  }

  static func options(_ command: Command) -> [Command.Option] {
    command.options + [.color, .help]
  }

  /// The options after which a word is their value, and is of the kind if one is given.
  static func valued(_ options: [Command.Option], _ kind: Kind? = nil) -> String {
    options.filter { $0.value != nil && (kind == nil || self.kind($0) == kind) }
      .flatMap { option in ["--\(option.name)"] + (option.short.map { ["-\($0)"] } ?? []) }
      .joined(separator: " ")
  }
}
