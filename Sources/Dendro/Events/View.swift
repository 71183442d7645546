package import DendroTree

/// One location that somebody listens to: its registrations, what they were last told, and what they
/// are still to be told. The hub's lock guards it.
package final class View {
  package let path: Path
  /// In the order of registration; only those that got their first events.
  private(set) var registrations: [Registration] = []
  /// Registrations whose first events wait in the queue.
  private(set) var joiningCount = 0
  /// What the registrations saw last.
  private var seen: Node
  /// When that was, as a number of the hub.
  private var seenAt: UInt64
  private var backlog = Queue<(node: Node, at: UInt64)>()
  /// How often the view stands in the delivery queue.
  private var turns = 0

  /// States that wait for a slow listener at most.
  static let backlogLimit = 64

  /// - Parameter time: when `node` was there, as a number of the hub.
  package init(path: Path, node: Node, at time: UInt64) {
    self.path = path
    seen = node
    seenAt = time
  }

  var isUnused: Bool { registrations.isEmpty && joiningCount == 0 }

  /// Notes a new state.
  ///
  /// Past the limit the backlog becomes this one state: the listeners get the difference from what they
  /// saw last. It comes in the place of the oldest state, so it is early rather than late.
  ///
  /// - Returns: whether the view is to be appended to the delivery queue.
  func note(_ node: Node, at time: UInt64) -> Bool {
    if backlog.count >= Self.backlogLimit { backlog.removeAll() }
    backlog.append((node, time))
    guard turns < backlog.count else { return false }
    turns += 1
    return true
  }

  /// The view's turn in the queue.
  ///
  /// - Returns: the states between which the registrations are told the difference; nil where there is
  ///   nothing to tell.
  func takeTurn() -> (old: Node, new: Node)? {
    turns -= 1
    guard let next = backlog.popFirst() else { return nil }
    defer {
      seen = next.node
      seenAt = next.at
    }
    return registrations.isEmpty ? nil : (seen, next.node)
  }

  func willJoin() { joiningCount += 1 }

  /// Makes a registration one that is told of changes.
  ///
  /// - Returns: the state with which it begins: that of its registration, or a newer one that the others
  ///   already saw.
  func join(_ registration: Registration, from node: Node, at time: UInt64) -> Node {
    joiningCount -= 1
    guard !registration.isRemoved else { return node }
    registrations.append(registration)
    return seenAt > time ? seen : node
  }

  /// - Returns: whether it was here.
  @discardableResult
  func leave(_ registration: Registration) -> Bool {
    guard let index = registrations.firstIndex(where: { $0 === registration }) else { return false }
    registrations.remove(at: index)
    return true
  }
}
