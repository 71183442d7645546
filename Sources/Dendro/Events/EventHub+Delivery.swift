import DendroTree
import Dispatch
import Synchronization

// One drain at a time takes the work, on the callback queue. Who dispatches a drain gives it a number; the
// last number is the one that counts. So a drain that its queue never came to can be replaced by one on
// another queue, and does nothing should its turn still come; one that is running sees between two blocks
// that it is to leave, and dispatches its successor itself.

extension EventHub {
  /// What a drain does next, taken out of the lock's reach.
  private enum Delivery: Sendable {
    case change(SharedGenerator, [Audience], old: Node, new: Node)
    case initial(SharedGenerator, Registration, Node)
    case tidying(SharedGenerator, EventGenerator.Unneeded)
    case call(@Sendable () -> Void)
    case end([DatabaseHandle: Registration])
    /// A state of a location where nobody listens any more.
    case release(Node)
    case nothing
  }

  /// What the state no longer holds, taken out of the lock's reach with a last reference, as may be. Nobody
  /// uses it, which is why it can be handed on.
  private struct Spent: @unchecked Sendable {
    var item: Item?
    var trees: [ListenerTree] = []
    var subscriptions: [ObjectIdentifier: Subscription] = [:]
  }

  /// A drain that is to be dispatched once the lock is free.
  struct DispatchedDrain: Sendable {
    let queue: DispatchQueue
    let number: UInt
  }

  /// Pieces of work after which a drain makes room for others on its queue.
  private static let drainQuantum = 256

  var callbackQueue: DispatchQueue {
    get { state.withLock { $0.queue } }
    set {
      var queue = newValue
      let drain = state.withLock { state -> DispatchedDrain? in
        guard state.queue !== queue else { return nil }
        swap(&state.queue, &queue)
        switch state.drain {
        case .none: return nil
        case .dispatched: return newDrain(&state)
        case .running:
          _ = nextDrainNumber()
          return nil
        }
      }
      drain.map(dispatch)
    }
  }

  /// To be called under the lock, and the drain dispatched after.
  func newDrain(_ state: inout State) -> DispatchedDrain {
    let number = nextDrainNumber()
    state.drain = .dispatched(number)
    return DispatchedDrain(queue: state.queue, number: number)
  }

  private func nextDrainNumber() -> UInt {
    drainNumber.wrappingAdd(1, ordering: .acquiringAndReleasing).newValue
  }

  func dispatch(_ drain: DispatchedDrain) {
    drain.queue.async { self.drain(drain.number) }
  }

  // MARK: Draining

  private func drain(_ number: UInt) {
    let begun = state.withLock { state -> Calls? in
      guard state.drain == .dispatched(number) else { return nil }
      state.drain = .running
      return state.calls.take() ?? Calls()
    }
    guard var calls = begun else { return }
    var quantum = Self.drainQuantum
    while true {
      while !isCalledOff(number), let call = calls.next() { make(call) }
      guard !isCalledOff(number), quantum > 0 else { return leave(calls) }
      quantum -= 1
      guard let delivery = next() else { return }
      calls = work(out: delivery)
    }
  }

  /// Whether another queue was set since.
  private func isCalledOff(_ number: UInt) -> Bool {
    drainNumber.load(ordering: .acquiring) != number
  }

  /// Ends this drain and leaves what it had still to call, and all else, to the next one.
  private func leave(_ calls: Calls) {
    dispatch(
      state.withLock { state in
        state.calls = calls
        return newDrain(&state)
      })
  }

  private func next() -> Delivery? {
    let (delivery, spent) = state.withLock { state -> (Delivery?, Spent) in
      guard let item = state.work.popFirst() else {
        state.drain = .none
        return (nil, Spent())
      }
      if case .end = item {
        let (registrations, spent) = end(&state)
        return (.end(registrations), spent)
      }
      return (begin(item, &state), Spent(item: item))
    }
    withExtendedLifetime(spent) {}
    return delivery
  }

  /// Forgets everybody at once.
  private func end(_ state: inout State) -> ([DatabaseHandle: Registration], Spent) {
    let registrations = state.byHandle
    let spent = Spent(trees: [state.data, state.info], subscriptions: state.subscriptions)
    state.byHandle = [:]
    state.data = ListenerTree(tally: state.tally)
    state.info = ListenerTree(tally: state.tally)
    state.subscriptions = [:]
    listenerCount.store(0, ordering: .relaxed)
    return (registrations, spent)
  }

  private func begin(_ item: Item, _ state: inout State) -> Delivery {
    switch item {
    case .turn(let location):
      guard let (old, new) = location.takeTurn() else { return .nothing }
      if location.isUnused { return .release(old) }
      // Also where all of them still wait for their first events: the generator has to follow.
      return .change(location.generator, location.audiences, old: old, new: new)
    case .joining(let registration, let location):
      guard !registration.isRemoved, let view = location.view(registration.query.parameters) else {
        return .nothing
      }
      view.join(registration)
      // What the others saw last, which is the state of the registration or a newer one.
      return .initial(location.generator, registration, location.seen)
    case .tidying(let location):
      location.isTidyingQueued = false
      return .tidying(location.generator, location.takeUnneeded())
    case .call(let body):
      return .call(body)
    case .end:
      return .nothing  // Taken before: it concerns everybody.
    }
  }

  // MARK: Delivering

  private func work(out delivery: Delivery) -> Calls {
    switch delivery {
    case .release, .nothing:
      return Calls()
    case .call(let body):
      return Calls(body)
    case .initial(let generator, let registration, let node):
      let events = generator.initialEvents(
        of: node, for: registration.query.parameters, registration.type,
        isSingle: registration.isSingle)
      return Calls([(Audience(registration), events)])
    case .change(let generator, let audiences, let old, let new):
      let changes = generator.events(from: old, to: new, for: audiences.map(\.request))
      return Calls(zip(audiences, changes).map { (audience: $0, events: $1) })
    case .tidying(let generator, let unneeded):
      generator.letGo(unneeded)
      return Calls()
    case .end(let registrations):
      for registration in registrations.values { registration.remove() }
      return Calls(cancelling: registrations.values.sorted { $0.handle < $1.handle })
    }
  }

  private func make(_ call: Calls.Call) {
    switch call {
    case .body(let body): body()
    case .event(let registration, let event): tell(registration, event)
    case .cancel(let registration): _ = registration.cancel(.closed)
    }
  }

  private func tell(_ registration: Registration, _ event: Event) {
    guard registration.hasJoined else { return }
    if registration.isSingle {
      // Before the block is called: what it writes does not call it again.
      guard registration.remove() else { return }
      state.withLock { forget(registration, in: &$0) }
    } else if registration.isRemoved {
      return
    }
    registration.tell(event.snapshot(of: registration.query), event.previousKey?.string)
  }
}
