package import DendroTree

/// Where a server keeps the security rules of a database, and what takes their place if they are in doubt.
package enum ServerRules {
  /// In the second root.
  package static let settings = path("settings")
  /// In the second root: a string.
  package static let rules = path("settings/rules")

  /// The second root after a repair that withdraws it. If there were rules, there are rules then that allow nothing: without
  /// any, the database would be as open as its server lets it be.
  static func root(inPlaceOf withdrawn: Node) -> Node {
    var root = Node.empty
    if !withdrawn.node(at: rules).isEmpty { root.graft(Node(.string(locked)), at: rules) }
    return root
  }

  private static let locked = """
    {
      // The rules of this database were in doubt when it was repaired. Until others are put, only administrators get in.
      "rules": {".read": false, ".write": false}
    }

    """

  private static func path(_ text: String) -> Path {
    guard let path = try? Path(parsing: text) else { preconditionFailure("\(text) is a path") }
    return path
  }
}
