import DendroTree

extension Path {
  /// The path that a `child(_:)` names: unlike elsewhere, "" is an error.
  init(child text: String) throws(ValidationError) {
    try Self.checkNotEmpty(text)
    self = try Path(parsing: text)
  }

  static func checkNotEmpty(_ text: String) throws(ValidationError) {
    guard !text.isEmpty else {
      throw ValidationError(.invalidPath, "a path must not be empty; \"/\" is the location itself")
    }
  }

  /// The path that a whole location names: as `init(child:)`, but it may also begin with `.info`.
  init(location text: String) throws(ValidationError) {
    var segments = text.utf8.split(separator: UInt8(ascii: "/"), maxSplits: 1)
    guard segments.first?.elementsEqual(".info".utf8) == true else {
      try self.init(child: text)
      return
    }
    segments.removeFirst()
    let rest = segments.first.map { String(Substring($0)) } ?? ""
    self = Path.info.appending(try Path(parsing: rest))
  }
}
