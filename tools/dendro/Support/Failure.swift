/// Why a command gives up: one sentence for people, a code for programs.
struct Failure: Error {
  var code: ExitCode
  var message: String
  /// What to do now.
  var hint: String?

  init(_ code: ExitCode, _ message: String, hint: String? = nil) {
    self.code = code
    self.message = message
    self.hint = hint
  }

  static func usage(_ message: String, hint: String? = nil) -> Failure {
    Failure(.usage, message, hint: hint)
  }
}
