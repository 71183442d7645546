package import DendroTree

// What the client wants.

extension SyncDialogue {
  // MARK: Listening

  /// Begins to show a target, unless it is shown already.
  ///
  /// - Parameters:
  ///   - target: what to show.
  ///   - use: another one than those of the target so far.
  package mutating func begin(_ target: SyncedTree.Target, for use: Use) -> [Effect] {
    uses[target, default: []].insert(use)
    return send(tree.begin(target))
  }

  /// Shows a target no more if nothing else needs it. Does nothing if the server has ended it meanwhile.
  package mutating func end(_ target: SyncedTree.Target, for use: Use) -> [Effect] {
    guard uses[target]?.remove(use) != nil, uses[target]?.isEmpty == true else { return [] }
    uses[target] = nil
    return send(tree.end(target))
  }

  /// Asks the server what is at a target.
  ///
  /// - Returns: the number of the reading, which its answer has.
  package mutating func read(_ target: SyncedTree.Target) -> (number: Int, effects: [Effect]) {
    lastRead += 1
    reads[lastRead] = target
    return (lastRead, send([.read(lastRead)]))
  }

  /// Gives up a reading, if it has no answer yet.
  package mutating func giveUp(read number: Int) { reads[number] = nil }

  // MARK: Writing

  /// A write of the present user as it is kept before it is made.
  package func outgoing(_ write: SyncWrite) -> OutgoingWrite {
    OutgoingWrite(
      user: user, draft: write.draft, estimate: write.draft.adds ? write.pending.write : nil,
      time: write.time, incarnation: numbering?.incarnation,
      sentTime: sendsNextWrite ? sendingTime : nil)
  }

  /// Writes: listeners see it at once.
  ///
  /// - Returns: the number of the write, which its answer has.
  package mutating func write(_ write: SyncWrite) -> (number: Int, effects: [Effect]) {
    lastWrite += 1
    let number = lastWrite
    writes[number] = outgoing(write)
    var effects = tree.write(write.pending, number: number).map { Effect.changed($0) }
    effects += send([.write(number)])
    for entry in write.pending.entries {
      effects += overwrite(entry.place.path, below: write.pending.path)
    }
    return (number, effects)
  }

  /// Takes back all that the server has not answered: writes, the last first, transactions and operations on disconnecting.
  package mutating func purge() -> [Effect] {
    var effects: [Effect] = []
    let canceled = transactions.items.keys.sorted()
    for number in tree.pending.writes.keys.sorted(by: >) {
      effects += tree.answered(number: number, isAccepted: false).map { .changed($0) }
    }
    for number in writes.keys.sorted() { effects.append(.answered(write: number, .canceled)) }
    writes = [:]
    let paths = canceled.compactMap { transactions[$0]?.path }
    transactions.attempts = [:]
    for id in canceled { transactions[id] = nil }
    for (id, path) in zip(canceled, paths) {
      effects.append(.transacted(id, .refused(.canceled)))
      effects += end(SyncedTree.Target(path), for: .transaction(id))
    }
    for number in registrations.keys.sorted() { effects.append(.registered(number, .canceled)) }
    registrations = [:]
    return effects
  }

  // MARK: Disconnecting

  /// Has the server make a write once the connection ends.
  ///
  /// - Returns: a number, which the answer has.
  package mutating func registerOnDisconnect(_ draft: Draft) -> (number: Int, effects: [Effect]) {
    register(Message(draft, onDisconnect: true))
  }

  /// Has the server forget what it was to write at a location and below.
  package mutating func cancelOnDisconnect(_ path: Path) -> (number: Int, effects: [Effect]) {
    register(Message("oc", DataPlace(path)) { $0 += "null".utf8 })
  }

  private mutating func register(_ message: Message) -> (number: Int, effects: [Effect]) {
    lastRegistration += 1
    registrations[lastRegistration] = message
    return (lastRegistration, send([.registration(lastRegistration)]))
  }

  /// The server makes a write, since the connection has ended.
  ///
  /// - Parameter write: resolved.
  package mutating func madeByServer(_ write: SyncWrite) -> [Effect] {
    var effects: [Effect] = []
    for entry in write.pending.entries {
      let place = entry.place.below(write.pending.path)
      effects += tree.put(entry.node, at: place, tag: nil).map { .changed($0) }
      effects += overwrite(place.path, below: .root)
    }
    return effects
  }

  // MARK: Identity

  /// Whose rights writes have behind a credential that the server has not taken yet: nil if it has to take it first. That
  /// is so at a server that makes writes once, since it tells them apart by their users. Other servers get the writes at
  /// once, as from the official clients.
  func userUnconfirmed(_ credential: SyncCredential?, _ user: SyncUser) -> SyncUser? {
    if credential == nil { return .anonymous }
    return server == nil ? user : nil
  }

  /// Signs in from now on, or out.
  ///
  /// - Parameters:
  ///   - new: the credential; nil to sign out.
  ///   - newUser: whose credential that is.
  package mutating func signIn(_ new: SyncCredential?, as newUser: SyncUser = .anonymous)
    -> [Effect]
  {
    let wasSignedIn = credential != nil
    credential = new
    credentialUser = newUser
    lastSignIn += 1
    guard phase == .ready else { return [] }
    // Until the server has another credential of the same user, it goes by the one before.
    if confirmedUser != newUser { confirmedUser = userUnconfirmed(new, newUser) }
    var effects: [Effect] = []
    if let new {
      effects = [request(new.action, new.body, .signIn(lastSignIn))]
    } else if wasSignedIn {
      effects = [request("unauth", Array("{}".utf8), .other)]
    }
    return effects + sendWrites()
  }
}
