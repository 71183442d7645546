import Dendro
import DendroProtocol
import DendroTree
import Synchronization

// What a step of the dialogue brings about.

extension SyncClient {
  func perform(
    _ effects: [SyncDialogue.Effect], _ state: inout State, _ due: inout Due
  ) {
    for effect in effects { perform(effect, &state, &due) }
  }

  private func perform(
    _ effect: SyncDialogue.Effect, _ state: inout State, _ due: inout Due
  ) {
    switch effect {
    case .send(let message): state.outgoing.append(message)
    case .changed(let step):
      observer.changed(
        step.target, Known(step.after.node, isComplete: step.after.isComplete))
    case .ended(let target, let refusal): observer.ended(target, DatabaseError(refusal))
    case .answered(let number, let refusal):
      state.store?.remove(write: number)
      noteHeard(&state)
      if let completion = state.writes.removeValue(forKey: number) {
        due.calls.append { completion(refusal.map { DatabaseError($0) }) }
      } else if let refusal {
        due.calls.append { [observer] in observer.report(DatabaseError(refusal)) }
      }
      endWaiting(&state, &due)
    case .sent(let number, let time):
      state.store?.mark(write: number, SyncRecords.sent, Node(.integer(time)))
    case .held(let number):
      state.store?.mark(write: number, SyncRecords.held, Node(.bool(true)))
      log(
        "the server cannot tell whether it has made write \(number), which would count twice: it waits in pendingWrites()",
        &due)
    case .met(let server): state.store?.knownServer = server
    case .owned(let numbers, let user):
      for number in numbers { state.store?.setUser(user, ofWrite: number) }
    case .got(let number, let result):
      guard let read = state.reads.removeValue(forKey: number) else { return }
      due.calls.append { read.completion(result.mapError { DatabaseError($0) }) }
    case .run(let id, let input): due.runs.append((id, input))
    case .transacted(let id, let end):
      guard let running = state.transactions.removeValue(forKey: id) else { return }
      due.calls.append {
        switch end {
        case .committed(let node): running.transaction.completion(.committed(node))
        case .aborted(let node): running.transaction.completion(.aborted(node))
        case .refused(let refusal):
          running.transaction.completion(.failed(DatabaseError(refusal)))
        }
        running.tell(.leave)
      }
    case .registered(let number, let refusal):
      guard let registered = state.registrations.removeValue(forKey: number) else { return }
      if refusal == nil {
        if let draft = registered.draft {
          state.onDisconnect.add(draft)
        } else {
          state.onDisconnect.cancel(registered.path)
        }
      }
      due.calls.append { registered.completion(refusal.map { DatabaseError($0) }) }
    case .signedIn(let refusal): noteSignedIn(refusal, &state, &due)
    case .revoked(let refusal): noteRevoked(refusal, &state, &due)
    case .ready(let session, let time):
      state.timeOffset = time - Self.clock()
      state.greeting = (time, .now)
      state.session = session
      state.isConnected = true
      showInfo(state)
      loop.noteReady()
    case .connectAgain(let host): due.command = .redirect(host)
    case .shutDown(let text):
      state.isOnline = false
      due.command = .disconnect
      leave(&state, &due)
      due.calls.append { [observer] in
        observer.report(DatabaseError(.unavailable, "ServerShutDown", "the server ends: \(text)"))
      }
    case .fail(let reason):
      due.command = .reconnect
      log("the connection is made again: \(reason)", &due)
    case .note(let text): log(text, &due)
    }
  }

  /// The server was heard: what it gives back later is not what this client needs.
  private func noteHeard(_ state: inout State) {
    guard let known = state.dialogue.knownServer, let greeting = state.greeting else { return }
    // Not by this machine's clock, which may be set meanwhile.
    let time = greeting.time + Int64((ContinuousClock.now - greeting.moment) / .milliseconds(1))
    guard time - known.time > Self.heardInterval else { return }
    let server = KnownServer(branch: known.branch, lsn: known.lsn, time: time)
    state.dialogue.knownServer = server
    state.store?.knownServer = server
  }

  /// How often that is noted, in milliseconds.
  private static let heardInterval: Int64 = 60 * 60 * 1000

  /// Writes a line into the log once the lock is released.
  func log(_ text: String, _ due: inout Due) {
    due.calls.append { [observer] in observer.log(text) }
  }

  /// Calls what waits for the writes before it.
  func endWaiting(_ state: inout State, _ due: inout Due) {
    while let waiting = state.afterWrites.first, !state.dialogue.isWaiting(upTo: waiting.last) {
      state.afterWrites.removeFirst()
      due.calls.append(waiting.completion)
    }
  }

  func showInfo(_ state: State) {
    observer.showInfo(
      isConnected: state.isConnected, timeOffset: state.timeOffset,
      isAuthenticated: state.isConnected && state.identity.isSignedIn)
  }

  // MARK: The connection

  /// A connection was made; the server speaks first.
  ///
  /// - Returns: its number: what comes of a connection that was given up does not count. Nil if none is wanted any more.
  func opened() -> Int? {
    step { state, _ in
      guard state.mayConnect else { return nil }
      state.line += 1
      state.isOpen = true
      state.outgoing = []
      state.dialogue.opened()
      return state.line
    }
  }

  /// Takes messages of the server together, which costs less than one after the other. What comes behind one that ends the
  /// connection does not count.
  func received(_ messages: ArraySlice<[UInt8]>, over line: Int) {
    var rest = messages
    while !rest.isEmpty {
      let isEnd = step { state, due in
        // The completions of a message are called before the events of later messages are delivered.
        while due.calls.isEmpty, due.runs.isEmpty, let message = rest.popFirst() {
          guard state.isOpen, state.line == line else { return true }
          perform(state.dialogue.receive(message), &state, &due)
          if due.command != nil { return true }
        }
        return false
      }
      if isEnd { return }
    }
  }

  /// Asks the server for the number of the last write that the client has received.
  func askLSN(over line: Int) {
    step { state, due in
      guard state.isOpen, state.line == line else { return }
      perform(state.dialogue.askLSN(), &state, &due)
    }
  }

  /// Takes what is to be sent over a connection.
  func takeOutgoing(over line: Int) -> [[UInt8]] {
    state.withLock { state in
      guard state.isOpen, state.line == line else { return [] }
      defer { state.outgoing = [] }
      return state.outgoing
    }
  }

  /// A connection is gone.
  func lost(_ line: Int) {
    step { state, due in if state.line == line { leave(&state, &due) } }
  }

  /// Gives up the connection, if there is one.
  func leave(_ state: inout State, _ due: inout Due) {
    guard state.isOpen else { return }
    state.isOpen = false
    state.outgoing = []
    let wasConnected = state.isConnected
    state.isConnected = false
    state.identity.isSignedIn = false
    if wasConnected { showInfo(state) }
    perform(state.dialogue.lost(), &state, &due)
    limitReads(&state, &due)
    // The server makes the writes that were registered for this, and has forgotten them.
    if let draft = state.onDisconnect.draft {
      state.onDisconnect = DisconnectOperations()
      let write = SyncWrite(draft, time: state.time, over: state.dialogue.tree)
      perform(state.dialogue.madeByServer(write), &state, &due)
    }
  }
}
