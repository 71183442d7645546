import DendroEngine
import DendroTree

/// What an iterator of a query's events stands on: its subscription, and the state that it got to.
///
/// One task at a time uses it, the one that iterates. It ends its subscription when it goes.
final class QueryFeed {
  let query: DatabaseQuery
  private let types: EventTypes
  private var subscription: Subscription?
  private var isEnded = false
  private var generator = EventGenerator()
  private var seen: Node?
  private var events = Queue<Event>()

  init(_ query: DatabaseQuery, _ types: EventTypes) {
    self.query = query
    self.types = types
  }

  deinit { unsubscribe() }

  /// The next event, as soon as there is one; nil at the end, which comes with the database's closing,
  /// after what happened before, and with the task's cancellation, at once.
  ///
  /// - Throws: ``DatabaseError`` at the first call where the query is bad or the database closed.
  func next(isolation: isolated (any Actor)? = #isolation) async throws(DatabaseError) -> Event? {
    guard !isEnded else { return nil }
    let subscription = try subscribed()
    while !Task.isCancelled {
      if let event = events.popFirst() { return event }
      guard case .state(let node) = await subscription.next(isolation: isolation) else { break }
      work(out: node)
    }
    end()
    return nil
  }

  private func subscribed() throws(DatabaseError) -> Subscription {
    if let subscription { return subscription }
    do throws(DatabaseError) {
      let new = try query.store.hub.subscribe(
        to: query, keepingStates: types != .value, engine: try query.listenable())
      subscription = new
      return new
    } catch {
      isEnded = true
      throw error
    }
  }

  private func work(out node: Node) {
    let new: [Event]
    if let seen {
      new =
        generator.events(
          from: seen, to: node, for: [EventGenerator.Request(query.parameters, types)])[0]
    } else {
      new = generator.initialEvents(
        of: node, for: query.parameters, types == .value ? .value : .childAdded)
    }
    seen = node
    for event in new { events.append(event) }
  }

  private func end() {
    isEnded = true
    unsubscribe()
    events.removeAll()
    generator = EventGenerator()
    seen = nil
  }

  private func unsubscribe() {
    guard let subscription else { return }
    self.subscription = nil
    query.store.hub.unsubscribe(subscription, of: query)
  }
}
