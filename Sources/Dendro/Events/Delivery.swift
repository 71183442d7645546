import DendroTree

/// The work that a drain has taken, and which of its calls were made. What one drain leaves, the next one goes on
/// with.
///
/// Unchecked: only the running drain uses it, of which there is one at a time. A drain begins under the hub's lock,
/// and so sees all that the one before did.
final class Delivery: @unchecked Sendable {
  private var work = Queue<EventHub.Work>()
  /// The states of those pieces of work that are changes.
  private var changes = Queue<SyncPoint.Change>()
  // Of the piece of work that is under way: the events of each audience, and the position of the next one.
  private var audiences: [Audience] = []
  private var events: [[Event]] = []
  private var audience = 0
  private var event = 0
  // The listeners that get the same event, nil where one was removed; the position of the next one, and what they get.
  private var registrations: [Registration?] = []
  private var listener = 0
  private var snapshot: DataSnapshot?
  private var previousKey: String?
  /// The block that is called next, instead of a listener.
  private var block: Callback<@Sendable () -> Void>?

  /// Appends work that the drain has taken; a change with its states.
  func append(_ taken: EventHub.Work, _ change: SyncPoint.Change? = nil) {
    work.append(taken)
    if let change { changes.append(change) }
  }

  /// The next piece of work, to be done once there is no call without it.
  func nextWork() -> EventHub.Work? { work.popFirst() }

  /// The states of the piece of work that is under way, a change.
  func nextChange() -> SyncPoint.Change? { changes.popFirst() }

  /// Calls a block next.
  func call(_ block: Callback<@Sendable () -> Void>) { self.block = block }

  /// Delivers events next: those of each audience, one after the other.
  func deliver(_ events: [[Event]], to audiences: [Audience]) {
    self.events = events
    self.audiences = audiences
  }

  // MARK: Calls

  /// Finds the next call that needs no more work to be done before it.
  ///
  /// - Returns: whether there is one.
  func findCall() -> Bool {
    if block != nil { return true }
    repeat {
      while listener < registrations.count {
        if registrations[listener] != nil { return true }
        listener += 1
      }
    } while findEvent()
    return false
  }

  /// Finds the next event that has a listener.
  private func findEvent() -> Bool {
    registrations = []
    listener = 0
    snapshot = nil
    while audience < audiences.count {
      guard event < events[audience].count else {
        audience += 1
        event = 0
        continue
      }
      let next = events[audience][event]
      event += 1
      registrations = audiences[audience].registrations(for: next.type)
      guard let first = registrations.lazy.compactMap({ $0 }).first else { continue }
      snapshot = next.snapshot(of: first.query)
      previousKey = next.previousKey?.string
      return true
    }
    audiences = []
    events = []
    audience = 0
    return false
  }

  /// The actor on which the call that was found has to be made; nil for the callback queue.
  var isolation: (any Actor)? {
    if let block { return block.isolation }
    guard let registration = registrations[listener], registration.hasIsolation else { return nil }
    return registration.isolation
  }

  /// Makes the call that was found, and then those of the listeners behind it that get the same event and belong to
  /// no actor, as long as `goesOn` returns true.
  func call(by hub: EventHub, whileTrue goesOn: () -> Bool) {
    if let block = block.take() { return block.call() }
    guard let snapshot else { return }
    let previousKey = previousKey
    var next = listener
    defer { listener = next }
    // References to listeners are not counted: that would take as long as everything else. The array keeps the
    // listeners, also those that are removed meanwhile.
    Reinterpretation.elements(of: registrations, as: Unmanaged<Registration>?.self) {
      registrations in
      var isFirst = true
      while next < registrations.count {
        if let registration = registrations[next] {
          let isNext =
            isFirst || (!registration._withUnsafeGuaranteedRef { $0.hasIsolation } && goesOn())
          guard isNext else { return }
          isFirst = false
          registration._withUnsafeGuaranteedRef { hub.deliver(snapshot, previousKey, to: $0) }
        }
        next += 1
      }
    }
  }
}
