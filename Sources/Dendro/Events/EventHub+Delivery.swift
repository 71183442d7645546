import DendroTree
import Dispatch
import Synchronization

// A drain is one run through the hub's work on the callback queue; there is one at a time. Each dispatched
// drain has a number, and only the last number counts. So a drain whose queue never runs it can be replaced
// by one on another queue, and does nothing if it runs after all; a running drain sees between two blocks
// that it has been replaced, and dispatches its successor.

extension EventHub {
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
      calls.callListeners(of: self, number)
      guard !isCalledOff(number) else { return leave(calls) }
      if let call = calls.next() {
        if let actor = call.isolation, !(drain.isOnMainActor && actor === MainActor.shared) {
          return make(call, and: calls, on: actor)
        }
        make(call)
        continue
      }
      guard quantum > 0 else { return leave(calls) }
      let work = takeWork(atMost: quantum)
      if work.isEmpty { return }
      quantum -= work.count
      calls = PendingCallbacks(work)
    }
  }

  /// Whether another callback queue was set since the drain with this number was dispatched.
  func isCalledOff(_ number: UInt) -> Bool {
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

  // MARK: Delivering

  func work(out delivery: consuming Delivery) -> PendingCallbacks.Calls {
    switch delivery {
    case .release, .nothing:
      return .none
    case .call(let body):
      return .body(body)
    case .initial(let generator, let registration, let node):
      let events = generator.initialEvents(
        of: node, for: registration.query.parameters, registration.type,
        isSingle: registration.isSingle)
      return .events([Audience(registration)], [events])
    case .read(let registration, let syncPoint, let node):
      return read(registration, syncPoint, node)
    case .single(let registration, let event):
      return .events([Audience(registration)], [[event]])
    case .change(let generator, let audiences, let old, let new, let changedKey):
      let events = generator.events(
        from: old, to: new, changedKey: changedKey, for: audiences.requests)
      return .events(audiences.all, events)
    case .pruning(let generator, let unneeded):
      generator.discard(unneeded)
      return .none
    case .end(let registrations):
      for registration in registrations.values { registration.remove() }
      return .cancel(registrations.values.sorted { $0.handle < $1.handle })
    }
  }

  /// Reads the only event of a registration: here where few children have to be read, else on another
  /// thread, so that it does not delay other events.
  private func read(_ registration: Registration, _ syncPoint: Guarded, _ node: Node)
    -> PendingCallbacks.Calls
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
    return .none
  }

  private func make(_ call: PendingCallbacks.Call) {
    switch call {
    case .body(let body): body.call()
    case .event(let registration, let snapshot, let previousKey):
      deliver(snapshot, previousKey, to: registration)
    case .cancel(let registration): registration.cancel(state.withLock { $0.endError })
    }
  }

  /// Calls the block of a listener, unless it was removed or has not got its first events. The caller runs on
  /// its actor, else on the callback queue.
  ///
  /// Not inlined: so the listener is the caller's for the whole call, and its block is called without being counted.
  @inline(never)
  func deliver(_ snapshot: DataSnapshot, _ previousKey: String?, to registration: Registration) {
    guard registration.isActive else { return }
    if registration.isSingle {
      // Removed before the call, so that a write by the block does not call it again.
      guard registration.remove() else { return }
      state.withLock { forget(registration, in: &$0) }
    } else if registration.isRemoved {
      return
    }
    registration.notify(snapshot, previousKey)
  }
}
