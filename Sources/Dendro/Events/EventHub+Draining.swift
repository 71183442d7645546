import DendroTree
import Dispatch
import Synchronization

// A drain is one run through the hub's work on the callback queue; there is one at a time. Each dispatched
// drain has a number, and only the last number counts. So a drain whose queue never runs it can be replaced
// by one on another queue, and does nothing if it runs after all; a running drain sees between two blocks
// that it has been replaced, and dispatches its successor.

extension EventHub {
  /// A drain to dispatch once the lock is released.
  struct Drain: Sendable {
    let queue: DispatchQueue
    let isOwnQueue: Bool
    let number: UInt

    /// Whether the queue runs on the main actor's thread, so that the drain can call its blocks directly.
    var isOnMainActor: Bool { queue === DispatchQueue.main }
  }

  /// Pieces of work after which a drain ends and dispatches its successor, and calls on an actor after which it
  /// leaves the actor: so the queue runs other blocks too, and the actor other jobs.
  private static let drainQuantum = 256
  /// Pieces of work that are taken under one lock.
  private static let takenWorkMax = 32

  var callbackQueue: DispatchQueue {
    get { state.withLock { $0.queue } }
    set {
      var queue = newValue
      let drain = state.withLock { state -> Drain? in
        guard state.queue !== queue else { return nil }
        swap(&state.queue, &queue)
        state.isOwnQueue = false
        if !state.isDraining { return state.work.hasDrain ? newDrain(&state) : nil }
        _ = nextDrainNumber()
        return nil
      }
      drain.map(dispatch)
    }
  }

  /// Makes the next drain. The caller holds the lock, and dispatches the drain once it has released it.
  func newDrain(_ state: inout State) -> Drain {
    state.isDraining = false
    return Drain(queue: state.queue, isOwnQueue: state.isOwnQueue, number: nextDrainNumber())
  }

  private func nextDrainNumber() -> UInt {
    drainNumber.wrappingAdd(1, ordering: .acquiringAndReleasing).newValue
  }

  func dispatch(_ drain: Drain) {
    drain.queue.async {
      guard drain.isOwnQueue else { return self.run(drain) }
      ThreadName.callbacks.during { self.run(drain) }
    }
  }

  // MARK: Draining

  private func run(_ drain: Drain) {
    let isCurrent = state.withLock { state in
      guard !isCalledOff(drain) else { return false }
      state.isDraining = true
      return true
    }
    guard isCurrent else { return }
    var quantum = Self.drainQuantum
    while !isCalledOff(drain) {
      if delivery.findCall() {
        if let actor = delivery.isolation, !(drain.isOnMainActor && actor === MainActor.shared) {
          Task { await makeCalls(on: actor) }
          return
        }
        delivery.call(by: self) { !isCalledOff(drain) }
      } else if let next = delivery.nextWork() {
        perform(next)
      } else if quantum > 0 {
        let count = takeWork(atMost: min(quantum, Self.takenWorkMax))
        if count == 0 { return }
        quantum -= count
      } else {
        break
      }
    }
    leave()
  }

  /// Whether another callback queue was set since the drain was dispatched.
  private func isCalledOff(_ drain: Drain) -> Bool {
    drainNumber.load(ordering: .acquiring) != drain.number
  }

  /// Makes the call that was found, and those behind it that belong to the same actor and need no more work.
  /// Meanwhile the callback queue is free, and the calls keep their order.
  private func makeCalls(on actor: isolated any Actor) async {
    var callCount = 0
    repeat {
      delivery.call(by: self) { false }
      callCount += 1
    } while callCount < Self.drainQuantum && delivery.findCall() && delivery.isolation === actor
    leave()
  }

  /// Ends this drain and leaves its remaining calls and all other work to the next one.
  private func leave() { dispatch(state.withLock { newDrain(&$0) }) }

  /// Takes the next pieces of work: changes and calls as many as there are, anything else as the last, since it
  /// depends on the work before it having been done.
  ///
  /// - Returns: the number of pieces; 0 if no work is left, and this drain has ended.
  private func takeWork(atMost limit: Int) -> Int {
    state.withLock { state in
      let count = state.work.take(atMost: limit) { work in
        switch work {
        case .change(let syncPoint):
          if let change = syncPoint.takeNextState() { delivery.append(work, change) }
          return true
        case .call:
          delivery.append(work)
          return true
        case .activation, .reading, .cancellation, .endOfReading, .pruning, .callAfterReads, .end:
          delivery.append(work)
          return false
        }
      }
      if count == 0 { state.isDraining = false }
      return count
    }
  }

  // MARK: Making events

  private func perform(_ work: Work) {
    switch work {
    case .change(let syncPoint):
      guard let change = delivery.nextChange(), let audiences = change.audiences else { return }
      let events =
        change.wasComplete && change.isComplete
        ? syncPoint.generator.events(
          from: change.old, to: change.new, changedKey: change.changedKey, for: audiences.requests)
        : syncPoint.generator.events(
          from: change.old, isComplete: change.wasComplete, to: change.new,
          isComplete: change.isComplete, for: audiences.requests)
      delivery.deliver(events, to: audiences.all)
    case .activation(let registration, let syncPoint):
      if !registration.isRemoved, syncPoint.isSeenComplete,
        registration.isRead(by: syncPoint.generator)
      {
        read(registration, syncPoint)
      } else {
        activate(registration, syncPoint)
      }
    case .reading(let registration, let syncPoint, let event):
      activate(registration, syncPoint, with: event)
    case .cancellation(let syncPoint, let error): cancelRegistrations(of: syncPoint, error)
    case .endOfReading: state.withLock { $0.endRead() }
    case .pruning(let syncPoint):
      syncPoint.generator.discard(state.withLock { _ in syncPoint.takeUnneeded() })
    case .call(let block): delivery.call(block)
    case .callAfterReads(let block):
      let waits = state.withLock { state in
        if state.readCount > 0 { state.callsAfterReads.append(block) }
        return state.readCount > 0
      }
      if !waits { delivery.call(block) }
    case .end: endRegistrations()
    }
  }

  /// Delivers the first events of a registration, from the state that the other listeners saw last: that of the
  /// registration's call or a later one.
  ///
  /// - Parameter event: the only one, if it was read. Without it a single listener whose event is read listens for
  ///   the first one from now on, like any other listener.
  private func activate(
    _ registration: Registration, _ syncPoint: SyncPoint, with event: Event? = nil
  ) {
    let isActive = state.withLock { _ in
      if registration.isRemoved { return false }
      syncPoint.activate(registration)
      return true
    }
    guard isActive, syncPoint.isSeenComplete || registration.type != .value else { return }
    let events =
      event.map { [$0] }
      ?? syncPoint.generator.initialEvents(
        of: syncPoint.seen, for: registration.query.parameters, registration.type,
        isSingle: registration.isSingle)
    delivery.deliver([events], to: [Audience(registration)])
  }

  /// Reads the only event of a registration: here if few children have to be read, else on another
  /// thread, so that it does not delay other events.
  private func read(_ registration: Registration, _ syncPoint: SyncPoint) {
    let node = syncPoint.seen
    let parameters = registration.query.parameters
    let type = registration.type
    if EventGenerator.onlyEventCost(of: node, for: parameters, type) <= 1_000 {
      let event = EventGenerator.onlyEvent(of: node, for: parameters, type)
      return activate(registration, syncPoint, with: event)
    }
    state.withLock { $0.readCount += 1 }
    BackgroundThread.read { [self] in
      let event = EventGenerator.onlyEvent(of: node, for: parameters, type)
      add { state in
        state.work.append(.reading(registration, syncPoint, event))
        state.work.append(.endOfReading)
      }
    }
  }

  /// Removes all registrations and subscriptions, and calls the registrations' cancel blocks next. Single events
  /// that are being read on other threads come first.
  private func endRegistrations() {
    /// What is freed without the lock. Unchecked: it was taken out of the state.
    struct Ended: @unchecked Sendable {
      let registrations: [DatabaseHandle: Registration]
      let trees: [ListenerTree]
      let subscriptions: [ObjectIdentifier: Subscription]
      let error: DatabaseError
    }
    let ended = state.withLock { state -> Ended? in
      guard state.readCount == 0 else {
        state.isEndWaiting = true
        return nil
      }
      let ended = Ended(
        registrations: state.byHandle, trees: [state.data, state.info],
        subscriptions: state.subscriptions, error: state.endError)
      state.byHandle = [:]
      state.data = ListenerTree(tally: state.tally)
      state.info = ListenerTree(tally: state.tally)
      state.remote = [:]
      state.subscriptions = [:]
      filter.removeAll()
      return ended
    }
    guard let ended else { return }
    for registration in ended.registrations.values { registration.remove() }
    cancel(ended.registrations.values.sorted { $0.handle < $1.handle }, ended.error)
  }

  /// Calls the cancel blocks of registrations that have ended next.
  func cancel(_ registrations: [Registration], _ error: DatabaseError) {
    for registration in registrations {
      let cancel = { @Sendable in registration.cancel(error) }
      delivery.append(.call(Callback(isolation: registration.cancelIsolation, call: cancel)))
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
      add { forget(registration, in: &$0) }
    } else if registration.isRemoved {
      return
    }
    registration.notify(snapshot, previousKey)
  }
}
