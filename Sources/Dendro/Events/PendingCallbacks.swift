import DendroTree

/// The calls of blocks that pieces of work make, in order. A drain can make some of the calls and leave the
/// rest to its successor.
struct PendingCallbacks: Sendable {
  enum Call: Sendable {
    case body(Callback<@Sendable () -> Void>)
    case event(Registration, DataSnapshot, previousKey: String?)
    /// The cancel block of a registration that ends because the database closes.
    case cancel(Registration)

    /// The actor on which the call has to be made; nil for the callback queue.
    var isolation: (any Actor)? {
      switch self {
      case .body(let body): body.isolation
      case .event(let registration, _, _): registration.isolation
      case .cancel(let registration): registration.cancelIsolation
      }
    }
  }

  /// What a piece of work calls.
  enum Calls: Sendable {
    case none
    case body(Callback<@Sendable () -> Void>)
    /// Each audience gets its events, one after the other.
    case events([Audience], [[Event]])
    case cancel([Registration])
  }

  private var calls: Calls
  // The position of the next call: among the events, or (`listener` alone) among the cancelled.
  private var view = 0
  private var event = 0
  private var listener = 0
  /// What the listeners of the event at this position get; nil until the first of them does.
  private var delivered: Delivered?
  /// Work whose calls come after these.
  private var work: [EventHub.Delivery]
  private var workedOutCount = 0

  /// An event as all listeners of a view get it.
  private struct Delivered: Sendable {
    let snapshot: DataSnapshot
    let previousKey: String?
    let registrations: [Registration?]
  }

  /// The calls that this work makes.
  init(_ work: [EventHub.Delivery] = []) {
    calls = .none
    self.work = work
  }

  /// Makes the calls of listeners that belong to no actor, until the drain with this number is called off, or
  /// until something else is to be called; works out what they are called with.
  mutating func callListeners(of hub: EventHub, _ number: UInt) {
    while true {
      guard let delivered = nextEvent() else {
        guard !hasCalls, workOut(by: hub) else { return }
        continue
      }
      guard callListeners(of: delivered, by: hub, number) else { return }
    }
  }

  /// Calls the listeners of an event, from the next one on, as `callListeners(of:_:)` does.
  ///
  /// References to listeners are not counted: that would take as long as everything else. The array keeps the
  /// listeners, also those that are removed meanwhile.
  ///
  /// - Returns: false where it stopped before one of them.
  private mutating func callListeners(
    of event: Delivered, by hub: EventHub, _ number: UInt
  ) -> Bool {
    event.registrations.withUnsafeBytes { registrations in
      while listener < event.registrations.count {
        // One word, whether its reference is counted or not; 0 is nil.
        let registration = registrations.load(
          fromByteOffset: listener &* MemoryLayout<Unmanaged<Registration>?>.stride,
          as: Unmanaged<Registration>?.self)
        if let registration {
          let mayCall = registration._withUnsafeGuaranteedRef { !$0.hasIsolation }
          guard mayCall, !hub.isCalledOff(number) else { return false }
          listener &+= 1
          registration._withUnsafeGuaranteedRef {
            hub.deliver(event.snapshot, event.previousKey, to: $0)
          }
        } else {
          listener &+= 1
        }
      }
      return true
    }
  }

  /// The next call, if it has to be made on this actor and needs no more work.
  mutating func next(on actor: any Actor) -> Call? {
    var ahead = self
    guard let call = ahead.next(), call.isolation === actor else { return nil }
    self = ahead
    return call
  }

  /// The next call; nil where there is none, or more work has to be done before.
  mutating func next() -> Call? {
    switch calls {
    case .none: return nil
    case .body(let body):
      calls = .none
      return .body(body)
    case .events:
      while let delivered = nextEvent() {
        while listener < delivered.registrations.count {
          defer { listener += 1 }
          if let registration = delivered.registrations[listener] {
            return .event(registration, delivered.snapshot, previousKey: delivered.previousKey)
          }
        }
      }
      return nil
    case .cancel(let registrations):
      guard listener < registrations.count else { return nil }
      defer { listener += 1 }
      return .cancel(registrations[listener])
    }
  }

  /// Whether there may be calls without more work.
  private var hasCalls: Bool {
    switch calls {
    case .none, .events: false
    case .body: true
    case .cancel(let registrations): listener < registrations.count
    }
  }

  /// The event whose listeners are called next; nil where there is none without more work.
  private mutating func nextEvent() -> Delivered? {
    if let delivered, listener < delivered.registrations.count { return delivered }
    guard case .events(let audiences, let events) = calls else { return nil }
    if delivered != nil {
      delivered = nil
      event += 1
      listener = 0
    }
    while view < audiences.count {
      if event < events[view].count {
        let next = events[view][event]
        let registrations = audiences[view].registrations(for: next.type)
        if let first = registrations.lazy.compactMap({ $0 }).first {
          delivered = Delivered(
            snapshot: next.snapshot(of: first.query), previousKey: next.previousKey?.string,
            registrations: registrations)
          return delivered
        }
        event += 1
      } else {
        view += 1
        event = 0
      }
    }
    calls = .none
    view = 0
    return nil
  }

  /// Works out the next piece of work.
  ///
  /// - Returns: false where none is left.
  private mutating func workOut(by hub: EventHub) -> Bool {
    guard workedOutCount < work.count else { return false }
    var next = EventHub.Delivery.nothing
    swap(&work[workedOutCount], &next)
    calls = hub.work(out: next)
    workedOutCount += 1
    view = 0
    event = 0
    listener = 0
    delivered = nil
    return true
  }
}
