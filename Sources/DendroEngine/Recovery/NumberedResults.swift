package import DendroTree

/// Where a server keeps what became of the writes to which clients have given numbers.
package enum NumberedResults {
  /// In the second root.
  package static let root = Path.root.appending(Key(fixed: "numbered"))
  /// Names the history of the database: a string. Without it the id of the database does.
  package static let branch = Key(fixed: "branch")
  package static let results = Key(fixed: "results")

  /// The second root of a state that is restored: from then on it is another history.
  static func restored(_ system: Node, _ random: () -> UInt64) -> Node {
    if system.node(at: root).isEmpty { return system }
    var system = system
    system.graft(newBranch(random), at: root.appending(branch))
    return system
  }

  /// Has the second root that a repair leaves in the place of another one say that it is another history: there may have been
  /// results.
  static func beginHistory(in left: inout Node, _ random: () -> UInt64) {
    left.graft(newBranch(random), at: root.appending(branch))
  }

  private static func newBranch(_ random: () -> UInt64) -> Node {
    let words = [random(), random()]
    let bytes = words.flatMap { word in
      (0..<8).map { UInt8(truncatingIfNeeded: word >> (8 * $0)) }
    }
    return Node(.string(hexadecimal(bytes)))
  }
}
