import DendroEngine
import DendroTree

/// The events of a query for one asynchronous iterator: its subscription and the last state it has seen.
///
/// Only the task that iterates uses it. It ends its subscription when it is freed.
final class QueryFeed {
  let query: DatabaseQuery
  private let types: EventTypes
  private var subscription: Subscription?
  private var isEnded = false
  private var generator: SharedGenerator?
  private var seen: Node?
  private var events = Queue<Event>()

  init(_ query: DatabaseQuery, _ types: EventTypes) {
    self.query = query
    self.types = types
  }

  deinit { unsubscribe() }

  /// Waits for the next event. Nil at the end: once the database is closed and all events before were
  /// returned, or as soon as the task is cancelled.
  ///
  /// - Throws: ``DatabaseError`` at the first call if the query is bad or the database closed; at the end if
  ///   the writer in another process cannot be followed any more.
  func next(isolation: isolated (any Actor)? = #isolation) async throws(DatabaseError) -> Event? {
    guard !isEnded else { return nil }
    if subscription == nil { try await load() }
    let subscription = try subscribed()
    while !Task.isCancelled {
      if let event = events.popFirst() { return event }
      guard case .state(let node) = await subscription.next(isolation: isolation) else { break }
      await append(eventsOf: node, isolation: isolation)
    }
    end()
    if !Task.isCancelled, let failure = subscription.failure ?? query.owner.hub.failure {
      throw failure
    }
    return nil
  }

  /// Reads what the query needs, in the background if that was not read since the database was opened.
  private func load() async throws(DatabaseError) {
    do throws(DatabaseError) {
      try await query.loadForListening(try query.listenable())
    } catch {
      isEnded = true
      throw error
    }
  }

  private func subscribed() throws(DatabaseError) -> Subscription {
    if let subscription { return subscription }
    do throws(DatabaseError) {
      let new = try query.owner.hub.subscribe(
        to: query, keepingStates: types != .value, try query.listenable())
      subscription = new
      generator = SharedGenerator(new.orders)
      return new
    } catch {
      isEnded = true
      throw error
    }
  }

  private func append(eventsOf node: Node, isolation: isolated (any Actor)?) async {
    guard let generator else { return }
    let old = seen
    seen = node
    let request = EventGenerator.Request(query.parameters, types)
    // Sorting or comparing many children would block the consumer's actor.
    let isLong = request.needsChildren && node.childCount > 1_000
    let new =
      isLong
      ? await Self.eventsInBackground(generator, from: old, to: node, request)
      : Self.events(generator, from: old, to: node, request)
    for event in new { events.append(event) }
  }

  private static func events(
    _ generator: SharedGenerator, from old: Node?, to new: Node, _ request: EventGenerator.Request
  ) -> [Event] {
    if let old { return generator.events(from: old, to: new, for: [request])[0] }
    return generator.initialEvents(
      of: new, for: request.parameters, request.types == .value ? .value : .childAdded)
  }

  @concurrent private static func eventsInBackground(
    _ generator: SharedGenerator, from old: Node?, to new: Node, _ request: EventGenerator.Request
  ) async -> [Event] {
    events(generator, from: old, to: new, request)
  }

  private func end() {
    isEnded = true
    unsubscribe()
    events.removeAll()
    generator = nil
    seen = nil
  }

  private func unsubscribe() {
    guard let subscription else { return }
    self.subscription = nil
    query.owner.hub.unsubscribe(subscription, of: query)
  }
}
