package import DendroTree

/// Where a server keeps what became of the writes to which clients have given numbers.
package enum NumberedResults {
  /// In the second root.
  package static let root = Path.root.appending(key("numbered"))
  /// Names the history of the database. A state that is restored is another history from then on.
  package static let branch = key("branch")

  /// The second root of a state that is restored.
  static func restored(_ system: Node) -> Node {
    var system = system
    system.graft(.empty, at: root.appending(branch))
    return system
  }

  private static func key(_ text: String) -> Key {
    guard let key = try? Key(text) else { preconditionFailure("\(text) is a key") }
    return key
  }
}
