package import DendroTree

// A transaction runs on what is known at its location, or on nothing, shows what it has made, and sends that with the hash
// of what it was made of. If the server has something else there, the transaction runs again.

extension SyncDialogue {
  /// What one run of a transaction's block has decided.
  package enum Decision: Sendable {
    /// A set or removal at the transaction's location. The time is the server's, as far as the client knows it.
    case write(Draft, time: Int64)
    case abort
    /// The transaction ends without anybody being told: the block has failed, or was not run.
    case nothing
  }

  package enum TransactionEnd: Sendable {
    /// What is there now.
    case committed(Node)
    /// What the block got.
    case aborted(Node)
    case refused(SyncRefusal)
  }

  /// Starts a transaction.
  ///
  /// - Parameters:
  ///   - path: of the location that it reads and writes.
  ///   - isVisible: whether listeners see what it makes before the server has taken it.
  /// - Returns: its number.
  package mutating func transact(
    at path: Path, isVisible: Bool
  ) -> (number: Int, effects: [Effect]) {
    lastTransaction += 1
    transactions[lastTransaction] = SyncTransactions.Item(path: path, isVisible: isVisible)
    let effects = begin(SyncedTree.Target(path), for: .transaction(lastTransaction))
    return (lastTransaction, effects + runTransactions(at: path))
  }

  /// A transaction's block was run.
  package mutating func decided(_ id: Int, _ decision: Decision) -> [Effect] {
    guard let item = transactions[id], item.phase == .running else { return [] }
    let input = input(of: id, item)
    if input != item.input, !decision.isNothing {
      // Something has come meanwhile.
      guard item.rerunCount < SyncTransactions.attemptCountMax else {
        return takeBack(id) + endTransaction(id, .refused(.retriedTooOften))
      }
      transactions[id]?.rerunCount += 1
      transactions[id]?.input = input
      return [.run(transaction: id, input: input)]
    }
    switch decision {
    case .nothing: return takeBack(id) + forget(id)
    case .abort: return takeBack(id) + endTransaction(id, .aborted(input))
    case .write(let draft, let time):
      var known = Node.empty
      if !input.isEmpty { known.graft(input, at: item.path) }
      var output = SyncValue(.empty)
      var node = Node.empty
      if case .set(_, let raw) = draft.write { output = SyncValue(raw, draft.deferred) }
      if case .set(_, let made) = draft.resolved(time: time, against: known) { node = made }
      lastWrite += 1
      let write = PendingWrites.Write(
        setting: DataPlace(item.path), node, isVisible: item.isVisible)
      var effects = tree.write(write, number: lastWrite).map { Effect.changed($0) }
      effects += takeBack(id)
      transactions[id]?.write = lastWrite
      transactions[id]?.output = output
      transactions[id]?.phase = .decided
      return effects + runTransactions(at: item.path) + sendTransactions(at: item.path)
    }
  }

  /// What a transaction's block gets: without what it has made itself, and what later ones have made.
  private func input(of id: Int, _ item: SyncTransactions.Item) -> Node {
    let later = transactions.related(to: item.path).filter { other in
      guard other >= id, let phase = transactions[other]?.phase else { return false }
      return other == id || phase != .sent && phase != .overwritten
    }
    let numbers = Set(later.compactMap { transactions[$0]?.write })
    return tree.node(at: item.path, without: numbers) ?? .empty
  }

  /// Has the blocks run that have to, one after the other in each group at a location.
  mutating func runTransactions(at path: Path) -> [Effect] {
    transactions.groups(at: path).flatMap { runNext(of: $0.ids) }
  }

  private mutating func runNext(of ids: [Int]) -> [Effect] {
    for id in ids {
      guard let item = transactions[id] else { continue }
      switch item.phase {
      case .sent, .overwritten: continue
      case .running: return []
      case .waiting, .decided:
        let input = input(of: id, item)
        if item.phase == .decided, input == item.input { continue }
        transactions[id]?.input = input
        transactions[id]?.phase = .running
        return [.run(transaction: id, input: input)]
      }
    }
    return []
  }

  /// Sends what those at a location have made, of each group in which all are decided.
  mutating func sendTransactions(at path: Path) -> [Effect] {
    send(
      decidedGroups(at: path).compactMap { group in
        lastWrite(of: group.ids).map { .transactions(group.path, last: $0) }
      })
  }

  func lastWrite(of ids: [Int]) -> Int? { ids.compactMap { transactions[$0]?.write }.max() }

  private func decidedGroups(at path: Path) -> [(path: Path, ids: [Int])] {
    transactions.groups(at: path).filter { group in
      group.ids.allSatisfy { transactions[$0]?.phase == .decided }
    }
  }

  /// Has what those at a location have made be sent, of each group in which all are decided.
  ///
  /// - Parameter last: groups with a write behind this one wait for their place.
  /// - Returns: the numbers of the attempts.
  mutating func attemptTransactions(at path: Path, last: Int) -> [Int] {
    decidedGroups(at: path).filter { lastWrite(of: $0.ids).map { $0 <= last } ?? false }
      .map { attempt($0.ids, at: $0.path) }
  }

  private mutating func attempt(_ ids: [Int], at path: Path) -> Int {
    let writes = ids.compactMap { transactions[$0]?.write }
    let before = tree.node(at: path, without: Set(writes))
    var value = SyncValue(before ?? .empty)
    for id in ids {
      guard let item = transactions[id] else { continue }
      value.put(item.output, at: item.path.dropFirst(path.count))
      transactions[id]?.phase = .sent
      transactions[id]?.sentCount += 1
      transactions[id]?.rerunCount = 0
    }
    var message = Message("p", DataPlace(path), hash: TreeHash.hash(before ?? .empty)) {
      value.append(to: &$0)
    }
    // Not the number of a write: the server may have been told that none below a later one waits for an answer.
    lastWrite += 1
    let number = lastWrite
    var isNumbered = false
    if let incarnation = numbering?.incarnation, let name = writeNumber(number, incarnation) {
      message.append(name)
      isNumbered = true
    }
    transactions.attempts[number] = SyncTransactions.Attempt(
      ids: ids, order: writes.max() ?? number, user: user, message: message, isNumbered: isNumbered)
    return number
  }

  // MARK: Answers

  /// The server has answered what transactions have made together.
  mutating func answered(_ ids: [Int], _ refusal: SyncRefusal?) -> [Effect] {
    let paths = ids.compactMap { transactions[$0]?.path }
    var effects: [Effect] = []
    switch refusal?.status {
    case nil:
      for id in ids {
        guard let number = transactions[id]?.write else { continue }
        effects += tree.answered(number: number, isAccepted: true).map { .changed($0) }
        transactions[id]?.write = nil
      }
      for id in ids {
        guard let item = transactions[id] else { continue }
        let node = tree.node(at: item.path) ?? item.output.node
        effects += endTransaction(id, .committed(node))
      }
    case "datastale":
      for id in ids {
        guard let item = transactions[id] else { continue }
        if item.phase == .overwritten {
          effects += takeBack(id) + endTransaction(id, .refused(.overwritten))
        } else if item.sentCount >= SyncTransactions.attemptCountMax {
          effects += takeBack(id) + endTransaction(id, .refused(.retriedTooOften))
        } else {
          transactions[id]?.phase = .waiting
        }
      }
    case _?:
      for id in ids { effects += takeBack(id) + endTransaction(id, .refused(refusal ?? .canceled)) }
    }
    for path in paths { effects += runTransactions(at: path) }
    for path in paths { effects += sendTransactions(at: path) }
    return effects
  }

  /// Ends transactions of which the server may have taken what was sent, and cannot tell.
  ///
  /// - Parameter kept: the numbers of what was sent that does not end.
  mutating func endAttempts(besides kept: Set<Int> = []) -> [Effect] {
    let lost = transactions.attempts.filter { !kept.contains($0.key) }
    for number in lost.keys { transactions.attempts[number] = nil }
    let ids = lost.values.flatMap(\.ids).sorted()
    let paths = ids.compactMap { transactions[$0]?.path }
    var effects: [Effect] = []
    for id in ids { effects += takeBack(id) + endTransaction(id, .refused(.disconnected)) }
    for path in paths { effects += runTransactions(at: path) }
    return effects
  }

  /// The client has written to a location itself: that ends the transactions at, above and below it whose blocks have run.
  mutating func overwrite(_ path: Path, below base: Path) -> [Effect] {
    if transactions.items.isEmpty { return [] }
    let path = base.appending(path)
    var effects: [Effect] = []
    for id in transactions.related(to: path) {
      guard let item = transactions[id] else { continue }
      if item.phase == .sent {
        transactions[id]?.phase = .overwritten
      } else if item.phase != .overwritten, item.write != nil {
        effects += takeBack(id) + endTransaction(id, .refused(.overwritten))
      }
    }
    return effects + runTransactions(at: path) + sendTransactions(at: path)
  }

  /// Takes back what a transaction has made.
  private mutating func takeBack(_ id: Int) -> [Effect] {
    guard let number = transactions[id]?.write else { return [] }
    transactions[id]?.write = nil
    return tree.answered(number: number, isAccepted: false).map { .changed($0) }
  }

  mutating func endTransaction(_ id: Int, _ end: TransactionEnd) -> [Effect] {
    if transactions[id] == nil { return [] }
    return [.transacted(id, end)] + forget(id)
  }

  private mutating func forget(_ id: Int) -> [Effect] {
    guard let path = transactions[id]?.path else { return [] }
    transactions[id] = nil
    var effects = self.end(SyncedTree.Target(path), for: .transaction(id))
    effects += runTransactions(at: path)
    return effects + sendTransactions(at: path)
  }
}

extension SyncDialogue.Decision {
  fileprivate var isNothing: Bool { if case .nothing = self { true } else { false } }
}
