package import DendroTree

/// The oracle of events: the events of a listener when its data change, computed in the simplest way. Look at
/// the children before, look at the children after, compare.
package enum ModelEvents {
  package typealias Child = (key: String, node: Node)

  /// What a listener sees: the node, and of its children those that are shown, in their order.
  package typealias View = (node: Node, children: [Child])

  package enum Kind: CaseIterable, Sendable { case removed, added, moved, changed, value }

  /// `previous` is the key of the child before, in the order after the change; nil for the first one,
  /// and if there is none.
  package typealias Event = (kind: Kind, child: Child, previous: String?)

  /// All events of one change, in their order: children that went, that came, that moved, that changed, and
  /// last the value.
  ///
  /// - `moves`: whether a child that is shown before and after has another place for having changed so.
  package static func events(
    from before: View, to after: View, moves: (Node, Node) -> Bool
  ) -> [Event] {
    func makeEvent(_ kind: Kind, _ child: Child) -> Event {
      (kind, child, previous(child.key, in: after.children))
    }
    let kept = after.children.compactMap { child in
      find(child.key, in: before.children).map { (was: $0.node, child: child) }
    }
    let changed = kept.filter { $0.was != $0.child.node }
    let moved = changed.filter { moves($0.was, $0.child.node) }
    let gone = before.children.filter { find($0.key, in: after.children) == nil }
    let new = after.children.filter { find($0.key, in: before.children) == nil }
    var events = gone.map { makeEvent(.removed, $0) }
    events += new.map { makeEvent(.added, $0) }
    events += moved.map { makeEvent(.moved, $0.child) }
    events += changed.map { makeEvent(.changed, $0.child) }
    if before.node != after.node { events.append((.value, ("", after.node), nil)) }
    return events
  }

  /// The first events of a registration for one kind.
  package static func initialEvents(of view: View, _ kind: Kind) -> [Event] {
    switch kind {
    case .value: [(.value, ("", view.node), nil)]
    case .added: view.children.map { (.added, $0, previous($0.key, in: view.children)) }
    default: []
    }
  }

  private static func find(_ key: String, in children: [Child]) -> Child? {
    children.first { same($0.key, key) }
  }

  private static func previous(_ key: String, in children: [Child]) -> String? {
    let index = children.firstIndex { same($0.key, key) } ?? 0
    return index == 0 ? nil : children[index - 1].key
  }

  /// Spelled the same: equal strings may differ in their normalisation.
  private static func same(_ a: String, _ b: String) -> Bool { a.utf8.elementsEqual(b.utf8) }
}
