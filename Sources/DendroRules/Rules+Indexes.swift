package import DendroTree

extension Rules {
  /// An index that a query needs and the rules do not declare.
  package struct MissingIndex: Hashable, Sendable {
    /// What `.indexOn` would have to name: a path of children, or `.value`.
    package let name: String
    /// The location as the rules have it: `/scores`, or `/users/$uid` if its node is for all keys.
    package let location: String

    /// As the Realtime Database says it.
    package var message: String {
      "Index not defined, add \".indexOn\": \"\(name)\", for path \"\(location)\", to the rules"
    }
  }

  /// The index that a query at a location lacks; nil if it needs none, or has it.
  package func missingIndex(for query: QueryParameters?, at path: Path) -> MissingIndex? {
    guard let query else { return nil }
    let name: String
    switch query.order {
    case .key, .priority: return nil
    case .value: name = ".value"
    case .child(let path): name = path.relativeText
    }
    if indexes(at: path).contains(where: { $0.utf8.elementsEqual(name.utf8) }) { return nil }
    return MissingIndex(name: name, location: program.location(for: path))
  }
}

extension RuleProgram {
  /// A location as the rules have it: with `$name` for each key that no rule names.
  fileprivate func location(for path: Path) -> String {
    path.storedBytes.withUnsafeBytes { path in
      var node = 0
      var names: [String] = []
      for key in KeyViews(storedPath: path) {
        if node >= 0 { node = child(node, key) }
        names.append(node >= 0 ? nodes[node].name : key.string)
      }
      return "/" + names.joined(separator: "/")
    }
  }
}
