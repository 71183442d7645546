import DendroTree

/// One query at a sync point, and its listeners. The hub's lock guards it.
final class ListenedQuery: Identifiable {
  let parameters: QueryParameters
  /// One entry for each kind of events that has a listener.
  private var listeners: [Listeners] = []

  private struct Listeners {
    let type: DataEventType
    /// In the order of registration.
    var registrations: InsertionOrder<Registration>
    /// How many of them have got their first events; those of the others are still queued.
    var activeCount = 0
  }

  private let tally: StepTally

  init(_ parameters: QueryParameters, tally: StepTally) {
    self.parameters = parameters
    self.tally = tally
  }

  var id: QueryParameters { parameters }

  var isUnused: Bool { listeners.isEmpty }

  /// All listeners, also those whose first events are still queued.
  var registrations: [Registration] {
    listeners.flatMap { one in
      tally.count += one.registrations.slots.count
      return one.registrations.slots.compactMap { $0 }
    }
  }

  func add(_ registration: Registration) {
    if index(of: registration.type) == nil {
      listeners.append(
        Listeners(type: registration.type, registrations: InsertionOrder(tally: tally)))
    }
    guard let index = index(of: registration.type) else { return }
    listeners[index].registrations.append(registration)
  }

  /// Marks a registration as one that gets changes from now on.
  func activate(_ registration: Registration) {
    guard let index = index(of: registration.type) else { return }
    registration.activate()
    listeners[index].activeCount += 1
  }

  func remove(_ registration: Registration) {
    guard let index = index(of: registration.type),
      listeners[index].registrations.remove(registration.handle) != nil
    else { return }
    if registration.isActive { listeners[index].activeCount -= 1 }
    if listeners[index].registrations.isEmpty { listeners.remove(at: index) }
  }

  private func index(of type: DataEventType) -> Int? {
    listeners.firstIndex { $0.type == type }
  }

  /// The listeners that a change now reaches; nil if none has got its first events.
  ///
  /// - Complexity: O(1), however many listeners there are.
  var audience: Audience? {
    var audience = Audience(parameters)
    for one in listeners where one.activeCount > 0 {
      audience.add(one.registrations.slots, for: one.type)
    }
    return audience.isEmpty ? nil : audience
  }
}

/// The listeners of a sync point at one moment: the audience of each query, and the events that it waits for.
final class Audiences: Sendable {
  let all: [Audience]
  let requests: [EventGenerator.Request]

  init(_ all: [Audience]) {
    self.all = all
    requests = all.map(\.request)
  }
}

/// The listeners of a query at one moment, as the drain uses them without the hub's lock. It also contains
/// those that were removed since and those that have not got their first events: the drain skips them.
struct Audience: Sendable {
  let parameters: QueryParameters
  private var listeners: [(type: DataEventType, registrations: [Registration?])] = []

  init(_ parameters: QueryParameters) { self.parameters = parameters }

  /// A single listener.
  init(_ registration: Registration) {
    parameters = registration.query.parameters
    add([registration], for: registration.type)
  }

  var isEmpty: Bool { listeners.isEmpty }

  mutating func add(_ registrations: [Registration?], for type: DataEventType) {
    listeners.append((type, registrations))
  }

  /// The listeners to a kind of events, in the order of registration; nil where one was removed.
  func registrations(for type: DataEventType) -> [Registration?] {
    listeners.first { $0.type == type }?.registrations ?? []
  }

  /// The events that they wait for.
  var request: EventGenerator.Request {
    var types = EventTypes()
    for one in listeners { types.insert(EventTypes(one.type)) }
    return EventGenerator.Request(parameters, types)
  }
}
