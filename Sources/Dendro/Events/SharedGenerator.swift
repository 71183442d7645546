import DendroTree
import Synchronization

/// An event generator that can be passed from thread to thread. It has one user at a time, the running drain
/// or an asynchronous iterator, so that no thread waits for its lock.
final class SharedGenerator: Sendable {
  private let generator: Mutex<EventGenerator>

  init(_ orders: OrderRegistry) { generator = Mutex(EventGenerator(orders)) }

  func events(
    from old: Node, to new: Node, changedKey: Key? = nil, for requests: [EventGenerator.Request]
  ) -> [[Event]] {
    generator.withLock {
      $0.events(from: old, to: new, changedKey: changedKey, for: requests)
    }
  }

  /// The events of a change of what is known. A value says all that is there: it comes as soon as that is known.
  func events(
    from old: Node, isComplete wasComplete: Bool, to new: Node, isComplete: Bool,
    for requests: [EventGenerator.Request]
  ) -> [[Event]] {
    generator.withLock { generator in
      var events = generator.events(from: old, to: new, for: requests)
      if wasComplete, isComplete { return events }
      for (index, request) in requests.enumerated() where request.types.contains(.value) {
        events[index].removeAll { $0.type == .value }
        if isComplete {
          events[index] += generator.initialEvents(of: new, for: request.parameters, .value)
        }
      }
      return events
    }
  }

  func initialEvents(
    of node: Node, for parameters: QueryParameters, _ type: DataEventType, isSingle: Bool = false
  ) -> [Event] {
    generator.withLock { $0.initialEvents(of: node, for: parameters, type, isSingle: isSingle) }
  }

  func keeps(_ parameters: QueryParameters) -> Bool {
    generator.withLock { $0.keeps(parameters) }
  }

  func discard(_ unneeded: EventGenerator.Unneeded) { generator.withLock { $0.discard(unneeded) } }

  /// Comparisons made so far by the generators of this path.
  var comparisonCount: Int { generator.withLock { $0.comparisonCount } }
}
