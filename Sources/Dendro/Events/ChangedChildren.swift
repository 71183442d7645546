import DendroTree

/// A child that differs between two states of a node; an empty node where it was not there, or is not.
struct ChangedChild {
  let key: Key
  let old: Node
  let new: Node

  /// All of them, in the order of keys.
  ///
  /// - Complexity: O(nodes that the two states do not share).
  static func all(from old: Node, to new: Node) -> [ChangedChild] {
    var changes: [ChangedChild] = []
    Node.changedChildren(from: old, to: new) {
      changes.append(ChangedChild(key: $0, old: $1, new: $2))
    }
    return changes
  }

  /// Where it stood and where it stands in an order; nil where it was not there, or is not.
  func shift(in order: SortOrder) -> Shift {
    Shift(
      old: old.isEmpty ? nil : order.position(of: key, old),
      new: new.isEmpty ? nil : order.position(of: key, new))
  }
}

struct Shift {
  let old: SortPosition?
  let new: SortPosition?
}

/// The children that left, entered, moved within and changed in a view: a child that moved also changed.
struct ViewDifference {
  struct Entry {
    let position: SortPosition
    let node: Node
  }

  /// By their old places, with their old nodes.
  var removed: [Entry] = []
  /// These by their new places.
  var added: [Entry] = []
  var moved: [Entry] = []
  var changed: [Entry] = []

  var isEmpty: Bool { removed.isEmpty && added.isEmpty && changed.isEmpty }

  /// A changed child of which the view showed `old` and shows `new`.
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
