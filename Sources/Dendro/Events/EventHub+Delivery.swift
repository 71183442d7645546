import DendroTree
import Dispatch
import Synchronization

extension EventHub {
  /// What a drain does next, taken out of the lock's reach.
  private enum Delivery: Sendable {
    case change(SharedGenerator, [Audience], old: Node, new: Node)
    case initial(SharedGenerator, Registration, Node)
    case tidying(SharedGenerator, [EventGenerator.Request])
    case call(@Sendable () -> Void)
    case cancel([Registration])
    /// Was removed before its first event. Its closures are the application's: they go when no lock is
    /// held.
    case drop(Registration)
  }

  /// A view's parameters and those who are told of its changes.
  private struct Audience: Sendable {
    let parameters: QueryParameters
    let registrations: [Registration]

    var request: EventGenerator.Request {
      var types = EventTypes()
      for registration in registrations { types.insert(EventTypes(registration.type)) }
      return EventGenerator.Request(parameters, types)
    }
  }

  /// Pieces of work after which a drain makes room for others on its queue.
  private static let drainQuantum = 256

  func drain() {
    for _ in 0..<Self.drainQuantum {
      guard let delivery = next() else { return }
      deliver(delivery)
    }
    callbackQueue.async { self.drain() }
  }

  private func next() -> Delivery? {
    state.withLock { state in
      while let item = state.work.popFirst() {
        switch item {
        case .turn(let location):
          guard let (old, new) = location.takeTurn(), !location.isUnused else { continue }
          // Also where all of them still wait for their first events: the generator has to follow.
          let audiences = location.views.compactMap { view in
            view.registrations.isEmpty
              ? nil : Audience(parameters: view.parameters, registrations: view.registrations)
          }
          return .change(location.generator, audiences, old: old, new: new)
        case .joining(let registration, let location):
          guard !registration.isRemoved,
            location.view(registration.query.parameters)?.join(registration) == true
          else { return .drop(registration) }
          // What the others saw last, which is the state of the registration or a newer one.
          return .initial(location.generator, registration, location.seen)
        case .tidying(let location):
          location.isTidyingQueued = false
          return .tidying(location.generator, location.requests)
        case .call(let body):
          return .call(body)
        case .end:
          let registrations = state.byHandle.values.sorted { $0.handle < $1.handle }
          for registration in registrations { forget(registration, in: &state) }
          return .cancel(registrations)
        }
      }
      state.isDraining = false
      return nil
    }
  }

  private func deliver(_ delivery: Delivery) {
    switch delivery {
    case .call(let body):
      body()
    case .initial(let generator, let registration, let node):
      let events = generator.initialEvents(
        of: node, for: registration.query.parameters, registration.type,
        isSingle: registration.isSingle)
      for event in events { tell([registration], event) }
    case .change(let generator, let audiences, let old, let new):
      let changes = generator.events(from: old, to: new, for: audiences.map(\.request))
      for (audience, events) in zip(audiences, changes) {
        for event in events { tell(audience.registrations, event) }
      }
    case .tidying(let generator, let requests):
      generator.keep(only: requests)
    case .drop:
      break
    case .cancel(let registrations):
      for registration in registrations { _ = registration.cancel(.closed) }
    }
  }

  private func tell(_ registrations: [Registration], _ event: Event) {
    for registration in registrations where registration.type == event.type {
      if registration.isSingle {
        // Before the block is called: what it writes does not call it again.
        guard registration.remove() else { continue }
        state.withLock { forget(registration, in: &$0) }
      } else if registration.isRemoved {
        continue
      }
      let query = registration.query
      let snapshot =
        if let key = event.key {
          DataSnapshot(event.node, at: query.ref.appending(key))
        } else {
          DataSnapshot(event.node, at: query.ref, order: query.parameters.order)
        }
      registration.tell(snapshot, event.previousKey?.string)
    }
  }
}
