/// Why a command gives up: one sentence for people, a code for programs.
struct Failure: Error {
  var code: ExitCode
  var message: String
  /// What the user can do about it.
  var hint: String?
  /// The directory that is damaged; nil if that is not known.
  var damagedDirectory: String?

  init(_ code: ExitCode, _ message: String, hint: String? = nil) {
    self.code = code
    self.message = message
    self.hint = hint
  }

  /// A word of the command line in quotation marks, as much of it as a message has room for.
  static func quoted(_ word: String) -> String { "'\(word.shortened(to: 80))'" }

  static func usage(_ message: String, hint: String? = nil) -> Failure {
    Failure(.usage, message, hint: hint)
  }
}

extension String {
  /// The whole, or as many scalars of its beginning and an ellipsis.
  func shortened(to limit: Int) -> String {
    // Not characters: one of those may have any number of scalars.
    guard utf8.count > limit else { return self }
    let scalars = unicodeScalars.prefix(limit)
    return scalars.endIndex == unicodeScalars.endIndex ? self : String(scalars) + "…"
  }
}
