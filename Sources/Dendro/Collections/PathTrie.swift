package import DendroTree

/// Places by their paths: a trie, in which a change finds the places that it affects without visiting the others.
///
/// Not thread-safe.
package final class PathTrie<Place: AnyObject> {
  private let root = Branch()

  /// The place at one path, and the way to those below.
  private final class Branch {
    private var children = Children()
    /// The children in plain string order. Made at the first change that needs it, and kept until a child is
    /// added or removed.
    private var ordered: [(key: Key, branch: Branch)]?
    var place: Place?

    var isUnused: Bool { place == nil && !hasChildren }
    var hasChildren: Bool { !children.isEmpty }

    subscript(key: Key) -> Branch? {
      get { children[key] }
      set {
        children[key] = newValue
        ordered = nil
      }
    }

    var childrenInStringOrder: [(key: Key, branch: Branch)] {
      if let ordered { return ordered }
      let new = PathTrie.inStringOrder(children.keys).compactMap { key in
        children[key].map { (key: key, branch: $0) }
      }
      ordered = new
      return new
    }

    func removeAll() {
      children = Children()
      ordered = nil
      place = nil
    }
  }

  package init() {}

  package var isEmpty: Bool { root.isUnused }

  /// The place at exactly this path.
  package subscript(path: Path) -> Place? {
    var branch = root
    for key in path.keys {
      guard let next = branch[key] else { return nil }
      branch = next
    }
    return branch.place
  }

  /// The place at exactly this path, which is made if there is none.
  ///
  /// - Complexity: O(length of the path).
  package func place(at path: Path, orInsert make: () -> Place) -> Place {
    var branch = root
    for key in path.keys {
      if let next = branch[key] {
        branch = next
      } else {
        let next = Branch()
        branch[key] = next
        branch = next
      }
    }
    if let place = branch.place { return place }
    let place = make()
    branch.place = place
    return place
  }

  /// Removes the place at a path, and the way to it as far as no other place needs it.
  ///
  /// - Complexity: O(length of the path).
  package func remove(_ path: Path) {
    var way: [(above: Branch, key: Key)] = []
    var branch = root
    for key in path.keys {
      guard let next = branch[key] else { return }
      way.append((branch, key))
      branch = next
    }
    branch.place = nil
    while branch.isUnused, let (above, key) = way.popLast() {
      above[key] = nil
      branch = above
    }
  }

  package func removeAll() { root.removeAll() }

  // MARK: Which places a change affects

  /// Calls `body` with each place above, at and below the changed paths, and with the key of the only child that
  /// may have changed, if it is known: descendants before ancestors, siblings in plain string order.
  ///
  /// - Parameter context: what `body` gets besides. A closure that captured it would copy it, which takes as long as
  ///   finding the places.
  /// - Complexity: O(length of the paths + places at and below them), however many there are elsewhere. For a
  ///   single path without places nothing is allocated.
  package func forEachAffected<Context>(
    by path: Path, and others: [Path] = [], in context: borrowing Context,
    _ body: (Place, borrowing Context, _ changedKey: Key?) -> Void
  ) {
    if others.isEmpty {
      var keys = path.keys.makeIterator()
      visit(root, along: &keys, in: context, body)
    } else {
      visit(root, along: ([path] + others).map { Array($0.keys)[...] }, in: context, body)
    }
  }

  private func visit<Context>(
    _ branch: Branch, along keys: inout Path.Keys.Iterator, in context: borrowing Context,
    _ body: (Place, borrowing Context, Key?) -> Void
  ) {
    guard let key = keys.next() else { return visitAll(branch, context, body) }
    if let next = branch[key] { visit(next, along: &keys, in: context, body) }
    if let place = branch.place { body(place, context, key) }
  }

  private func visit<Context>(
    _ branch: Branch, along paths: [ArraySlice<Key>], in context: borrowing Context,
    _ body: (Place, borrowing Context, Key?) -> Void
  ) {
    if paths.contains(where: \.isEmpty) { return visitAll(branch, context, body) }
    if branch.hasChildren {
      var changed: [Key: [ArraySlice<Key>]] = [:]
      for path in paths {
        guard let key = path.first, branch[key] != nil else { continue }
        changed[key, default: []].append(path.dropFirst())
      }
      for key in Self.inStringOrder(changed.keys) {
        if let next = branch[key], let rest = changed[key] {
          visit(next, along: rest, in: context, body)
        }
      }
    }
    if let place = branch.place { body(place, context, nil) }
  }

  private func visitAll<Context>(
    _ branch: Branch, _ context: borrowing Context, _ body: (Place, borrowing Context, Key?) -> Void
  ) {
    if branch.hasChildren {
      for (_, next) in branch.childrenInStringOrder { visitAll(next, context, body) }
    }
    if let place = branch.place { body(place, context, nil) }
  }

  /// Not the order of keys: here 10 comes before 9, as in Firebase's SDKs.
  private static func inStringOrder(_ keys: some Collection<Key>) -> [Key] {
    guard keys.count > 1 else { return Array(keys) }
    return keys.map { (key: $0, units: Array($0.string.utf16)) }
      .sorted { $0.units.lexicographicallyPrecedes($1.units) }
      .map(\.key)
  }

  /// Branches by key. Up to four are searched one after the other, since a key is compared faster than hashed.
  private struct Children {
    private var few: [(key: Key, branch: Branch)] = []
    /// All children, once there were more than a few of them.
    private var many: [Key: Branch] = [:]

    private static var fewMax: Int { 4 }

    var isEmpty: Bool { few.isEmpty && many.isEmpty }

    var keys: [Key] { many.isEmpty ? few.map(\.key) : Array(many.keys) }

    subscript(key: Key) -> Branch? {
      get {
        if !many.isEmpty { return many[key] }
        // By index: without optimization an iterator of the array would allocate.
        var index = 0
        while index < few.count {
          if few[index].key == key { return few[index].branch }
          index += 1
        }
        return nil
      }
      set {
        if !many.isEmpty { return many[key] = newValue }
        few.removeAll { $0.key == key }
        guard let newValue else { return }
        few.append((key, newValue))
        if few.count > Self.fewMax {
          for child in few { many[child.key] = child.branch }
          few = []
        }
      }
    }
  }
}
