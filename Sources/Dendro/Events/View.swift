import DendroTree

/// What one query shows of a location, and who listens to it. The hub's lock guards it.
final class View {
  let parameters: QueryParameters
  /// In the order of registration; only those that got their first events.
  private(set) var registrations: [Registration] = []
  /// Registrations whose first events wait in the queue.
  private(set) var joining: [Registration] = []

  init(_ parameters: QueryParameters) { self.parameters = parameters }

  var isUnused: Bool { registrations.isEmpty && joining.isEmpty }

  func willJoin(_ registration: Registration) { joining.append(registration) }

  /// Makes a registration one that is told of changes.
  ///
  /// - Returns: false where it was removed meanwhile.
  func join(_ registration: Registration) -> Bool {
    guard let index = joining.firstIndex(where: { $0 === registration }) else { return false }
    joining.remove(at: index)
    registrations.append(registration)
    return true
  }

  func leave(_ registration: Registration) {
    registrations.removeAll { $0 === registration }
    joining.removeAll { $0 === registration }
  }

  /// The kinds of events that anybody waits for here.
  var types: EventTypes {
    var types = EventTypes()
    for registration in registrations { types.insert(EventTypes(registration.type)) }
    for registration in joining { types.insert(EventTypes(registration.type)) }
    return types
  }
}
