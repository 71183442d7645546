import DendroTree

/// The children of a trie node, found by key.
///
/// Up to four are searched one after the other, since a key is compared faster than hashed.
struct TrieChildren {
  private var few: [(key: Key, node: ListenerTree.TrieNode)] = []
  /// All children, once there were more than a few of them.
  private var many: [Key: ListenerTree.TrieNode] = [:]

  private static var fewMax: Int { 4 }

  var isEmpty: Bool { few.isEmpty && many.isEmpty }

  var keys: [Key] { many.isEmpty ? few.map(\.key) : Array(many.keys) }

  subscript(key: Key) -> ListenerTree.TrieNode? {
    get {
      if !many.isEmpty { return many[key] }
      // By index: without optimization an iterator of the array would allocate.
      var index = 0
      while index < few.count {
        if few[index].key == key { return few[index].node }
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
        for child in few { many[child.key] = child.node }
        few = []
      }
    }
  }
}
