/// The calls of blocks that one piece of work makes, in order. A drain can make some of the calls and leave
/// the rest to its successor.
struct PendingCallbacks: Sendable {
  enum Call: Sendable {
    case body(Callback<@Sendable () -> Void>)
    case event(Registration, Event)
    /// The cancel block of a registration that ends because the database closes.
    case cancel(Registration)

    /// The actor on which the call has to be made; nil for the callback queue.
    var isolation: (any Actor)? {
      switch self {
      case .body(let body): body.isolation
      case .event(let registration, _): registration.isolation
      case .cancel(let registration): registration.cancelIsolation
      }
    }
  }

  private var body: Callback<@Sendable () -> Void>?
  private var deliveries: [(audience: Audience, events: [Event])] = []
  private var cancelled: [Registration] = []

  // The position of the next call: in the deliveries, then (`listener` alone) in `cancelled`.
  private var view = 0
  private var event = 0
  private var listener = 0

  /// No calls.
  init() {}

  init(_ body: Callback<@Sendable () -> Void>) { self.body = body }

  /// Each audience gets its events, one after the other.
  init(_ deliveries: [(audience: Audience, events: [Event])]) { self.deliveries = deliveries }

  init(cancelling registrations: [Registration]) { cancelled = registrations }

  /// The next call, if it has to be made on this actor.
  mutating func next(on actor: any Actor) -> Call? {
    var ahead = self
    guard let call = ahead.next(), call.isolation === actor else { return nil }
    self = ahead
    return call
  }

  mutating func next() -> Call? {
    if let body = body.take() { return .body(body) }
    while view < deliveries.count {
      while event < deliveries[view].events.count {
        let type = deliveries[view].events[event].type
        let registrations = deliveries[view].audience.registrations(for: type)
        while listener < registrations.count {
          defer { listener += 1 }
          if let registration = registrations[listener] {
            return .event(registration, deliveries[view].events[event])
          }
        }
        event += 1
        listener = 0
      }
      view += 1
      event = 0
    }
    guard listener < cancelled.count else { return nil }
    defer { listener += 1 }
    return .cancel(cancelled[listener])
  }
}
