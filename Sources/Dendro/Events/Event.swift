package import DendroTree

/// One event of a query: a value, made from two states of what the query shows.
package struct Event: Sendable {
  package let type: DataEventType
  /// The child; nil for `.value`.
  package let key: Key?
  /// The child's node, for a removed child its old one; for `.value` all that the query shows.
  package let node: Node
  /// The child before it among those that the query shows now.
  package let previousKey: Key?
  /// For `.value` the children that the query shows, in its order, if they are known.
  package let ranked: [OrderedChildren.Element]?

  /// An event of a child.
  init(_ type: DataEventType, key: Key, node: Node, previousKey: Key?) {
    self.type = type
    self.key = key
    self.node = node
    self.previousKey = previousKey
    ranked = nil
  }

  /// An event of all that the query shows.
  init(value: ShownChildren) {
    type = .value
    key = nil
    node = value.node
    previousKey = nil
    ranked = value.ranked
  }

  /// The snapshot that listeners to the query get: of the query's value, in its order, or of a child.
  func snapshot(of query: DatabaseQuery) -> DataSnapshot {
    guard let key else {
      return DataSnapshot(node, at: query.ref, order: query.parameters.order, ranked: ranked)
    }
    return DataSnapshot(node, at: query.ref.appending(key))
  }
}

/// A set of kinds of events: only events that have a listener are made.
package struct EventTypes: OptionSet, Sendable {
  package let rawValue: UInt8

  package init(rawValue: UInt8) { self.rawValue = rawValue }
  package init(_ type: DataEventType) { rawValue = 1 << UInt8(type.rawValue) }

  package static let value = EventTypes(.value)
  package static let added = EventTypes(.childAdded)
  package static let removed = EventTypes(.childRemoved)
  package static let changed = EventTypes(.childChanged)
  package static let moved = EventTypes(.childMoved)
}
