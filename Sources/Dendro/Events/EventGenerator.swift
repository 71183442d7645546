package import DendroTree

/// Events as a function of two states of a view.
///
/// Removed children first, then added, moved and changed ones, the value last; within each group in the
/// view's order, removed ones by their old place, the others by their new one. A child that moved both
/// moves and changes.
package enum EventGenerator {
  /// What changed between two states.
  ///
  /// - Complexity: O(changed children · log n) where no changed child has a priority; parts that both
  ///   states share are skipped.
  package static func events(from old: Node, to new: Node, for wanted: EventTypes) -> [Event] {
    if old.isIdentical(to: new) { return [] }
    var events: [Event] = []
    if wanted != .value {
      childEvents(from: old, to: new, for: wanted, into: &events)
      if wanted.contains(.value), !events.isEmpty || old != new {
        events.append(Event(type: .value, key: nil, node: new, previousKey: nil))
      }
    } else if old != new {
      events.append(Event(type: .value, key: nil, node: new, previousKey: nil))
    }
    return events
  }

  /// What a registration is told at its beginning: every child as added, or the value.
  static func initialEvents(of node: Node, for type: DataEventType) -> [Event] {
    switch type {
    case .value:
      return [Event(type: .value, key: nil, node: node, previousKey: nil)]
    case .childAdded:
      var events: [Event] = []
      events.reserveCapacity(node.childCount)
      var previous: Key?
      for child in ChildOrder.children(of: node) {
        events.append(
          Event(type: .childAdded, key: child.key, node: child.node, previousKey: previous))
        previous = child.key
      }
      return events
    case .childRemoved, .childChanged, .childMoved:
      return []
    }
  }

  private static func childEvents(
    from old: Node, to new: Node, for wanted: EventTypes, into events: inout [Event]
  ) {
    var removed: [Child] = []
    var added: [Child] = []
    var moved: [Child] = []
    var changed: [Child] = []
    for key in changedKeys(from: old, to: new) {
      let before = old.child(key)
      let after = new.child(key)
      if after.isEmpty {
        removed.append(Child(key: key, node: before))
      } else if before.isEmpty {
        added.append(Child(key: key, node: after))
      } else {
        changed.append(Child(key: key, node: after))
        if before.priority != after.priority { moved.append(Child(key: key, node: after)) }
      }
    }
    func emit(_ children: [Child], _ type: DataEventType) {
      guard wanted.contains(EventTypes(type)) else { return }
      for child in children.sorted(by: ChildOrder.precedes) {
        let previous =
          type == .childRemoved ? nil : ChildOrder.predecessor(of: child, in: new)
        events.append(Event(type: type, key: child.key, node: child.node, previousKey: previous))
      }
    }
    emit(removed, .childRemoved)
    emit(added, .childAdded)
    emit(moved, .childMoved)
    emit(changed, .childChanged)
  }

  /// The keys of the children that differ, each once, in the order of keys.
  private static func changedKeys(from old: Node, to new: Node) -> [Key] {
    var keys: [Key] = []
    if old.isBranch && new.isBranch {
      // Without their own priorities, whose difference would hide those of the children.
      Node.difference(from: old.settingPriority(nil), to: new.settingPriority(nil)) { path, _, _ in
        if let key = path.first, key != keys.last { keys.append(key) }
      }
    } else {
      for (key, _) in old.children { keys.append(key) }
      for (key, _) in new.children { keys.append(key) }
    }
    return keys
  }
}
