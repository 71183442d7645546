import DendroTree

extension Path {
  /// The path that a `child(_:)` names: unlike elsewhere, "" is an error.
  init(child text: String) throws(ValidationError) {
    guard !text.isEmpty else {
      throw ValidationError(.invalidPath, "a path must not be empty; \"/\" is the location itself")
    }
    self = try Path(parsing: text)
  }
}
