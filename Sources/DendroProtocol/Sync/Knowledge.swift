package import DendroTree

/// What is known of a location.
package struct Knowledge: Sendable {
  /// The data, as far as it is known.
  package internal(set) var node = Node.empty
  /// Whether that is all there is, or all that a query shows.
  package internal(set) var isComplete = false
  /// Whether it is what a query shows, which says nothing about other children.
  package internal(set) var isWindow = false

  /// Whether the child at a key is known, also that there is none.
  func isComplete(at key: Key) -> Bool { isComplete && !isWindow || node.has(key) }

  /// Whether all at a place is known.
  func isComplete(at place: DataPlace) -> Bool {
    if let key = place.path.first { return isComplete(at: key) }
    return isComplete && !isWindow || place.isPriority && node.priority != nil
  }
}
