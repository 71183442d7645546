/// The blocks that one piece of work calls, in order. Who makes the calls may leave the rest of them to
/// somebody else at any point.
struct Calls: Sendable {
  enum Call: Sendable {
    case body(@Sendable () -> Void)
    case event(Registration, Event)
    /// Of a registration that ends with the database.
    case cancel(Registration)
  }

  private var body: (@Sendable () -> Void)?
  private var told: [(audience: Audience, events: [Event])] = []
  private var cancelled: [Registration] = []

  /// Where in what is told the next call is, or in what is cancelled.
  private var view = 0
  private var event = 0
  private var listener = 0

  /// None.
  init() {}

  init(_ body: @escaping @Sendable () -> Void) { self.body = body }

  /// Each audience is told its events, one after the other.
  init(_ told: [(audience: Audience, events: [Event])]) { self.told = told }

  init(cancelling registrations: [Registration]) { cancelled = registrations }

  mutating func next() -> Call? {
    if let body = body.take() { return .body(body) }
    while view < told.count {
      while event < told[view].events.count {
        let type = told[view].events[event].type
        let registrations = told[view].audience.registrations(for: type)
        while listener < registrations.count {
          defer { listener += 1 }
          if let registration = registrations[listener] {
            return .event(registration, told[view].events[event])
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
