import DendroTree
import Dispatch
import Synchronization

// A drain is one run through the hub's work on the callback queue; there is one at a time. Each dispatched
// drain has a number, and only the last number counts. So a drain whose queue never runs it can be replaced
// by one on another queue, and does nothing if it runs after all; a running drain sees between two blocks
// that it has been replaced, and dispatches its successor.

extension EventHub {
  /// One piece of work taken by a drain, with all that it needs to do it without the lock.
  private enum Delivery: Sendable {
    case change(SharedGenerator, [Audience], old: Node, new: Node, changedKey: Key?)
    case initial(SharedGenerator, Registration, Node)
    /// Reads the only event of a registration from the node.
    case read(Registration, Guarded, Node)
    case single(Registration, Event)
    case pruning(SharedGenerator, EventGenerator.Unneeded)
    case call(Callback<@Sendable () -> Void>)
    case end([DatabaseHandle: Registration])
    /// Frees a state of a sync point that has no listeners any more.
    case release(Node)
    case nothing
  }

  /// Objects taken out of the state, which are freed once the lock is released. Unchecked: only the drain
  /// that took them has them.
  private struct Released: @unchecked Sendable {
    var item: Item?
    var trees: [ListenerTree] = []
    var subscriptions: [ObjectIdentifier: Subscription] = [:]
  }

  /// A drain to dispatch once the lock is released.
  struct DispatchedDrain: Sendable {
    let queue: DispatchQueue
    let isOwnQueue: Bool
    let number: UInt

    /// Whether the queue runs on the main actor's thread, so that the drain can call its blocks directly.
    var isOnMainActor: Bool { queue === DispatchQueue.main }
  }

  /// Pieces of work after which a drain ends and dispatches its successor, so that the queue runs other
  /// blocks too.
  private static let drainQuantum = 256

  var callbackQueue: DispatchQueue {
    get { state.withLock { $0.queue } }
    set {
      var queue = newValue
      let drain = state.withLock { state -> DispatchedDrain? in
        guard state.queue !== queue else { return nil }
        swap(&state.queue, &queue)
        state.isOwnQueue = false
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

  /// Makes the next drain. The caller holds the lock, and dispatches the drain once it has released it.
  func newDrain(_ state: inout State) -> DispatchedDrain {
    let number = nextDrainNumber()
    state.drain = .dispatched(number)
    return DispatchedDrain(queue: state.queue, isOwnQueue: state.isOwnQueue, number: number)
  }

  private func nextDrainNumber() -> UInt {
    drainNumber.wrappingAdd(1, ordering: .acquiringAndReleasing).newValue
  }

  func dispatch(_ drain: DispatchedDrain) {
    drain.queue.async {
      guard drain.isOwnQueue else { return self.run(drain) }
      ThreadName.callbacks.during { self.run(drain) }
    }
  }

  // MARK: Draining

  private func run(_ drain: DispatchedDrain) {
    let number = drain.number
    let begun = state.withLock { state -> PendingCallbacks? in
      guard state.drain == .dispatched(number) else { return nil }
      state.drain = .running
      return state.calls.take() ?? PendingCallbacks()
    }
    guard var calls = begun else { return }
    var quantum = Self.drainQuantum
    while true {
      while !isCalledOff(number), let call = calls.next() {
        if let actor = call.isolation, !(drain.isOnMainActor && actor === MainActor.shared) {
          return make(call, and: calls, on: actor)
        }
        make(call)
      }
      guard !isCalledOff(number), quantum > 0 else { return leave(calls) }
      quantum -= 1
      guard let delivery = next() else { return }
      calls = work(out: delivery)
    }
  }

  /// Whether another callback queue was set since the drain with this number was dispatched.
  private func isCalledOff(_ number: UInt) -> Bool {
    drainNumber.load(ordering: .acquiring) != number
  }

  /// Makes a call and those behind it that belong to the same actor there, and leaves the rest to the next
  /// drain. Meanwhile the callback queue is free, and the calls keep their order.
  private func make(
    _ first: PendingCallbacks.Call, and calls: PendingCallbacks, on actor: any Actor
  ) {
    Task { leave(await make(first, and: calls, isolation: actor)) }
  }

  private func make(
    _ first: PendingCallbacks.Call, and calls: PendingCallbacks, isolation: isolated any Actor
  ) async -> PendingCallbacks {
    make(first)
    var calls = calls
    // Bounded, so that the actor runs other jobs too.
    for _ in 1..<Self.drainQuantum {
      guard let call = calls.next(on: isolation) else { break }
      make(call)
    }
    return calls
  }

  /// Ends this drain and leaves its remaining calls and all other work to the next one.
  private func leave(_ calls: PendingCallbacks) {
    dispatch(
      state.withLock { state in
        state.calls = calls
        return newDrain(&state)
      })
  }

  private func next() -> Delivery? {
    let (delivery, released) = state.withLock { state -> (Delivery?, Released) in
      guard let item = state.work.popFirst() else {
        state.drain = .none
        return (nil, Released())
      }
      if case .end = item {
        if state.readCount > 0 {
          state.isEndWaiting = true
          return (.nothing, Released())
        }
        let (registrations, released) = end(&state)
        return (.end(registrations), released)
      }
      return (begin(item, &state), Released(item: item))
    }
    withExtendedLifetime(released) {}
    return delivery
  }

  /// Removes all registrations and subscriptions.
  private func end(_ state: inout State) -> ([DatabaseHandle: Registration], Released) {
    let registrations = state.byHandle
    let released = Released(trees: [state.data, state.info], subscriptions: state.subscriptions)
    state.byHandle = [:]
    state.data = ListenerTree(tally: state.tally)
    state.info = ListenerTree(tally: state.tally)
    state.subscriptions = [:]
    listenerCount.store(0, ordering: .relaxed)
    return (registrations, released)
  }

  private func begin(_ item: Item, _ state: inout State) -> Delivery {
    switch item {
    case .change(let syncPoint):
      guard let (old, new, changedKey) = syncPoint.takeNextState() else { return .nothing }
      if syncPoint.isUnused { return .release(old) }
      // Also where all listeners still wait for their first events: the generator follows each state.
      return .change(
        syncPoint.generator, syncPoint.audiences, old: old, new: new, changedKey: changedKey)
    case .activation(let registration, let syncPoint):
      guard !registration.isRemoved, let view = syncPoint.view(registration.query.parameters) else {
        return .nothing
      }
      if registration.isRead(by: syncPoint.generator) {
        state.readCount += 1
        return .read(registration, Guarded(syncPoint), syncPoint.seen)
      }
      view.activate(registration)
      // The state that the other listeners saw last: that of the registration's call or a later one.
      return .initial(syncPoint.generator, registration, syncPoint.seen)
    case .reading(let registration, let syncPoint, let event):
      guard !registration.isRemoved, let view = syncPoint.view(registration.query.parameters) else {
        return .nothing
      }
      view.activate(registration)
      // Without a child to report, it listens for the first one from now on, like any other listener.
      return event.map { .single(registration, $0) }
        ?? .initial(syncPoint.generator, registration, syncPoint.seen)
    case .pruning(let syncPoint):
      syncPoint.isPruningQueued = false
      return .pruning(syncPoint.generator, syncPoint.takeUnneeded())
    case .call(let body):
      return .call(body)
    case .end:
      return .nothing  // `next()` handles it, since it takes the whole state.
    }
  }

  // MARK: Delivering

  private func work(out delivery: Delivery) -> PendingCallbacks {
    switch delivery {
    case .release, .nothing:
      return PendingCallbacks()
    case .call(let body):
      return PendingCallbacks(body)
    case .initial(let generator, let registration, let node):
      let events = generator.initialEvents(
        of: node, for: registration.query.parameters, registration.type,
        isSingle: registration.isSingle)
      return PendingCallbacks([(Audience(registration), events)])
    case .read(let registration, let syncPoint, let node):
      return read(registration, syncPoint, node)
    case .single(let registration, let event):
      return PendingCallbacks([(Audience(registration), [event])])
    case .change(let generator, let audiences, let old, let new, let changedKey):
      let changes = generator.events(
        from: old, to: new, changedKey: changedKey, for: audiences.map(\.request))
      return PendingCallbacks(zip(audiences, changes).map { (audience: $0, events: $1) })
    case .pruning(let generator, let unneeded):
      generator.discard(unneeded)
      return PendingCallbacks()
    case .end(let registrations):
      for registration in registrations.values { registration.remove() }
      return PendingCallbacks(cancelling: registrations.values.sorted { $0.handle < $1.handle })
    }
  }

  /// Reads the only event of a registration: here where few children have to be read, else on another
  /// thread, so that it does not delay other events.
  private func read(_ registration: Registration, _ syncPoint: Guarded, _ node: Node)
    -> PendingCallbacks
  {
    let parameters = registration.query.parameters
    let type = registration.type
    if EventGenerator.onlyEventCost(of: node, for: parameters, type) <= 1_000 {
      let event = EventGenerator.onlyEvent(of: node, for: parameters, type)
      let delivery = state.withLock { state in
        state.readCount -= 1
        return begin(.reading(registration, syncPoint.value, event), &state)
      }
      return work(out: delivery)
    }
    BackgroundThread.read { [self] in
      let event = EventGenerator.onlyEvent(of: node, for: parameters, type)
      add { state in
        state.work.append(.reading(registration, syncPoint.value, event))
        state.readCount -= 1
        if state.readCount == 0, state.isEndWaiting { state.work.append(.end) }
      }
    }
    return PendingCallbacks()
  }

  /// A sync point outside of the lock that guards it. Unchecked: the holder only passes it back to code
  /// under the lock.
  private struct Guarded: @unchecked Sendable {
    let value: SyncPoint

    init(_ value: SyncPoint) { self.value = value }
  }

  private func make(_ call: PendingCallbacks.Call) {
    switch call {
    case .body(let body): body.call()
    case .event(let registration, let event): deliver(event, to: registration)
    case .cancel(let registration): registration.cancel(.closed)
    }
  }

  private func deliver(_ event: Event, to registration: Registration) {
    guard registration.isActive else { return }
    if registration.isSingle {
      // Removed before the call, so that a write by the block does not call it again.
      guard registration.remove() else { return }
      state.withLock { forget(registration, in: &$0) }
    } else if registration.isRemoved {
      return
    }
    registration.notify(event.snapshot(of: registration.query), event.previousKey?.string)
  }
}
