package import DendroTree

/// One thing that happened in a view: pure data, made from two states of the view.
package struct Event: Sendable {
  package let type: DataEventType
  /// The child; nil for `.value`.
  package let key: Key?
  /// The child's node, the old one where it was removed; the whole view for `.value`.
  package let node: Node
  /// The neighbour before it in the new view.
  package let previousKey: Key?

  static func value(_ node: Node) -> Event {
    Event(type: .value, key: nil, node: node, previousKey: nil)
  }

  /// What listeners to the query get: its value in its order, or a child.
  func snapshot(of query: DatabaseQuery) -> DataSnapshot {
    guard let key else { return DataSnapshot(node, at: query.ref, order: query.parameters.order) }
    return DataSnapshot(node, at: query.ref.appending(key))
  }
}

/// Kinds of events. Only those that a listener waits for are made.
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
