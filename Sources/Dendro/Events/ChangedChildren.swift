import DendroTree

/// A child that differs between two states of a node. A state without the child has an empty node for it.
struct ChangedChild {
  let key: Key
  let old: Node
  let new: Node

  /// The children that differ, in the order of keys.
  ///
  /// - Complexity: O(nodes that the two states do not share).
  static func all(from old: Node, to new: Node) -> [ChangedChild] {
    var changes: [ChangedChild] = []
    Node.changedChildren(from: old, to: new) {
      changes.append(ChangedChild(key: $0, old: $1, new: $2))
    }
    return changes
  }

  /// The child's old and new position in an order.
  func shift(in order: SortOrder) -> Shift {
    Shift(
      old: old.isEmpty ? nil : order.position(of: key, old),
      new: new.isEmpty ? nil : order.position(of: key, new))
  }
}

/// A child's positions before and after a change; nil where the child was not there, or is no longer.
struct Shift {
  let old: SortPosition?
  let new: SortPosition?
}

/// The children that were removed from a view, were added to it, moved in it and changed in it. A child
/// that moved has changed too.
struct ViewDifference {
  struct Entry {
    let position: SortPosition
    let node: Node
  }

  /// With their old positions and nodes.
  var removed: [Entry] = []
  // The others with their new positions and nodes.
  var added: [Entry] = []
  var moved: [Entry] = []
  var changed: [Entry] = []

  var isEmpty: Bool { removed.isEmpty && added.isEmpty && changed.isEmpty }

  /// Adds a changed child whose position in the view was `old` and is `new`; nil where the view does not
  /// show it.
  mutating func note(
    _ child: ChangedChild, from old: SortPosition?, to new: SortPosition?, _ order: SortOrder
  ) {
    switch (old, new) {
    case (let old?, nil): removed.append(Entry(position: old, node: child.old))
    case (nil, let new?): added.append(Entry(position: new, node: child.new))
    case (_?, let new?):
      let entry = Entry(position: new, node: child.new)
      changed.append(entry)
      if order.moves(from: child.old, to: child.new) { moved.append(entry) }
    case (nil, nil): break
    }
  }

  mutating func sort(countingIn tally: ComparisonTally) {
    func precedes(_ a: Entry, _ b: Entry) -> Bool {
      tally.add()
      return a.position < b.position
    }
    removed.sort(by: precedes)
    added.sort(by: precedes)
    moved.sort(by: precedes)
    changed.sort(by: precedes)
  }
}
