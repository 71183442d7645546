import DendroTree

/// One thing that a view's listeners are told: pure data, made from two states of the view.
struct Event {
  let type: DataEventType
  /// The child; nil for `.value`.
  let key: Key?
  /// The child's node, the old one where it was removed; the whole view for `.value`.
  let node: Node
  /// The neighbour before it in the new view.
  let previousKey: Key?
}

/// The kinds of events that anybody waits for: what nobody wants is not worked out.
struct EventTypes: OptionSet, Sendable {
  let rawValue: UInt8

  init(rawValue: UInt8) { self.rawValue = rawValue }
  init(_ type: DataEventType) { rawValue = 1 << UInt8(type.rawValue) }

  static let value = EventTypes(.value)
  static let added = EventTypes(.childAdded)
  static let removed = EventTypes(.childRemoved)
  static let changed = EventTypes(.childChanged)
  static let moved = EventTypes(.childMoved)
}
