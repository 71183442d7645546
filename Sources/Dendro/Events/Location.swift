import DendroStorage
package import DendroTree
import Synchronization

/// One location that somebody listens to: its views, what they were last told, and what they are still
/// to be told. The hub's lock guards it.
package final class Location {
  package let path: Path
  /// In the order in which their first registration came; each with other parameters.
  private(set) var views: [View] = []
  /// What makes the events. Only the one drain that runs uses it, in the order of the work.
  let generator = SharedGenerator()
  /// What the views were told last.
  private(set) var seen: Node
  private var backlog = Queue<Node>()
  /// How often the location stands in the delivery queue.
  private var turns = 0
  /// Whether the generator is to be told what it need not keep any longer.
  var isTidyingQueued = false

  /// States that wait for a slow listener at most.
  static let backlogLimit = Mutant.listenerBacklog.isPlanted ? Int.max : 64

  package init(path: Path, node: Node) {
    self.path = path
    seen = node
  }

  var isUnused: Bool { views.isEmpty }

  // MARK: Who listens

  func view(_ parameters: QueryParameters) -> View? {
    views.first { $0.parameters == parameters }
  }

  /// The view with these parameters, made if there is none.
  func viewForJoining(_ parameters: QueryParameters) -> View {
    if let view = view(parameters) { return view }
    let view = View(parameters)
    views.append(view)
    return view
  }

  func leave(_ registration: Registration) {
    guard let view = view(registration.query.parameters) else { return }
    view.leave(registration)
    if view.isUnused { views.removeAll { $0 === view } }
  }

  /// What the views wait for, or will once their first events came.
  var requests: [EventGenerator.Request] {
    views.map { EventGenerator.Request($0.parameters, $0.types) }
  }

  // MARK: What they are told

  /// Notes a new state.
  ///
  /// Past the limit the backlog becomes this one state: the listeners get the difference from what they
  /// saw last. It comes in the place of the oldest state, so it is early rather than late.
  ///
  /// - Returns: whether the location is to be appended to the delivery queue.
  func note(_ node: Node) -> Bool {
    if backlog.count >= Self.backlogLimit { backlog.removeAll() }
    backlog.append(node)
    if Mutant.eventOrder.isPlanted {
      for _ in 1..<backlog.count { if let older = backlog.popFirst() { backlog.append(older) } }
    }
    guard turns < backlog.count else { return false }
    turns += 1
    return true
  }

  /// The location's turn in the queue.
  ///
  /// - Returns: the states between which the views are told the difference; nil where there is nothing to
  ///   tell.
  func takeTurn() -> (old: Node, new: Node)? {
    turns -= 1
    guard let next = backlog.popFirst() else { return nil }
    defer { seen = next }
    return (seen, next)
  }
}

/// An event generator that can be handed to the drain: the lock is never waited for.
final class SharedGenerator: Sendable {
  private let generator = Mutex(EventGenerator())

  func events(from old: Node, to new: Node, for requests: [EventGenerator.Request]) -> [[Event]] {
    generator.withLock { $0.events(from: old, to: new, for: requests) }
  }

  func initialEvents(
    of node: Node, for parameters: QueryParameters, _ type: DataEventType, isSingle: Bool
  ) -> [Event] {
    generator.withLock { $0.initialEvents(of: node, for: parameters, type, isSingle: isSingle) }
  }

  func keep(only requests: [EventGenerator.Request]) {
    generator.withLock { $0.keep(only: requests) }
  }
}
