import DendroTree

/// Two states of a node, of which one follows the other.
struct Step {
  let old: Node
  let new: Node
  /// The key of the only child that may differ; nil if any may.
  let changedKey: Key?
  /// The children that differ, in the order of keys. Made when they are asked for.
  private(set) lazy var changes = ChangedChild.all(from: old, to: new, changedKey)

  init(from old: Node, to new: Node, changedKey: Key?) {
    self.old = old
    self.new = new
    self.changedKey = changedKey
  }

  /// How the children that differ moved in an order; also one that may differ and does not.
  mutating func shifts(in order: SortOrder) -> [Shift] {
    guard let changedKey else { return changes.map { $0.shift(in: order) } }
    return [
      Shift(
        old: old.packedPosition(ofChild: changedKey, in: order),
        new: new.packedPosition(ofChild: changedKey, in: order))
    ]
  }
}

/// A child that differs between two states of a node. A state without the child has an empty node for it.
struct ChangedChild {
  let key: Key
  let old: Node
  let new: Node

  /// The children that differ, in the order of keys.
  ///
  /// - Parameter changedKey: the key of the only child that may differ, if it is known.
  /// - Complexity: O(nodes that the two states do not share).
  static func all(from old: Node, to new: Node, _ changedKey: Key? = nil) -> [ChangedChild] {
    if let changedKey {
      let change = ChangedChild(
        key: changedKey, old: old.child(changedKey), new: new.child(changedKey))
      return change.old == change.new ? [] : [change]
    }
    var changes: [ChangedChild] = []
    Node.changedChildren(from: old, to: new) {
      changes.append(ChangedChild(key: $0, old: $1, new: $2))
    }
    return changes
  }

  /// The child's old and new position in an order.
  func shift(in order: SortOrder) -> Shift {
    Shift(
      old: old.isEmpty ? nil : order.packedPosition(of: key, old),
      new: new.isEmpty ? nil : order.packedPosition(of: key, new))
  }
}

/// A child's positions before and after a change; nil if the child was not there, or is no longer.
struct Shift {
  let old: PackedPosition?
  let new: PackedPosition?
}

/// The children that were removed from what a query shows, were added to it, moved in it and changed in it. A
/// child that moved has changed too.
struct ViewDifference {
  struct Entry {
    let key: Key
    let position: PackedPosition
    let node: Node
  }

  /// With their old positions and nodes.
  var removed: [Entry] = []
  // The others with their new positions and nodes.
  var added: [Entry] = []
  var moved: [Entry] = []
  var changed: [Entry] = []

  var isEmpty: Bool { removed.isEmpty && added.isEmpty && changed.isEmpty }

  /// Adds a changed child whose position in the query was `old` and is `new`; nil if the query does not
  /// show it.
  mutating func note(
    _ child: ChangedChild, from old: PackedPosition?, to new: PackedPosition?, _ order: SortOrder
  ) {
    switch (old, new) {
    case (let old?, nil):
      removed.append(Entry(key: child.key, position: old, node: child.old))
    case (nil, let new?): added.append(Entry(key: child.key, position: new, node: child.new))
    case (_?, let new?):
      let entry = Entry(key: child.key, position: new, node: child.new)
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
