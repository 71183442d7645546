package import DendroTree

/// One thing that a view's listeners are told: pure data, made from two states of the view.
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
}

/// The kinds of events that anybody waits for: what nobody wants is not worked out.
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
