import DendroTree

// What the server says.

extension SyncDialogue {
  /// What a server's clock may say, in milliseconds since 1970: what dates can be.
  private static let times: ClosedRange<Int64> = -8_640_000_000_000_000...8_640_000_000_000_000

  /// - Parameter message: whole.
  package mutating func receive(_ message: [UInt8]) -> [Effect] {
    var envelope = WireEnvelope()
    guard envelope.read(message) else { return [.fail("a message is no object")] }
    switch envelope.type {
    case UInt8(ascii: "c"): return control(message, envelope.kind)
    case UInt8(ascii: "d"):
      if let number = envelope.number { return answer(Int(number), envelope.body) }
      return push(envelope.action.text, envelope.body)
    default: return [.fail("a message has no type")]
    }
  }

  private mutating func control(_ message: [UInt8], _ kind: UInt8?) -> [Effect] {
    let members = JSONMembers(message[...])?.object("d")
    switch kind {
    case UInt8(ascii: "h"):
      guard phase == .opening, let hello = members?.object("d"),
        let time = hello.integer("ts"), Self.times.contains(time),
        let session = hello.string("s")
      else { return [.fail("the hello says no time and no session")] }
      let server = hello.object("dendro").flatMap { NumberedServer($0) }
      return [.ready(session: session, time: time)] + goOn(server, time: time)
    case UInt8(ascii: "r"): return [.connectAgain(host: members?.string("d") ?? "")]
    case UInt8(ascii: "s"): return [.shutDown(members?.string("d") ?? "")]
    case UInt8(ascii: "e"):
      return [.note("the server reports an error: \(members?.string("d") ?? "")")]
    default: return []
    }
  }

  private mutating func answer(_ request: Int, _ body: JSONMembers?) -> [Effect] {
    // An answer to no request is ignored.
    guard let awaits = awaited.removeValue(forKey: request) else { return [] }
    guard let status = body?.string("s") else { return [.fail("an answer has no status")] }
    let refusal =
      status == "ok" ? nil : SyncRefusal(status: status, text: body?.string("d") ?? "")
    switch awaits {
    case .other: return []
    case .signIn(let number):
      guard number == lastSignIn else { return [] }
      confirmedUser = refusal == nil ? credentialUser : nil
      return [.signedIn(refusal)] + sendWrites()
    case .listen(let target, let number, _):
      guard let refusal else {
        return warnings(target, body)
          + changed(tree.listened(number: number, target, lsn: Self.lsn(body)))
      }
      return end(target, number: number, refusal)
    case .lsn:
      guard let lsn = Self.lsn(body) else { return [] }
      tree.hear(lsn, unanswered: Set(awaited.values.compactMap(\.listenNumber)))
      return []
    case .write(let number, let byteCount):
      onTheirWay.remove(byteCount)
      // A server that makes the write once, and cannot now, is asked again over the next connection.
      if refusal?.status == "unavailable", server != nil, isNumbered(number) {
        return [.fail("the server cannot make the writes now: \(refusal?.text ?? "")")]
      }
      let isPending = writes.removeValue(forKey: number) != nil
      guard isPending || waitingWrites.removeValue(forKey: number) != nil else {
        return sendMore()
      }
      return changed(tree.answered(number: number, isAccepted: refusal == nil))
        + [.answered(write: number, refusal)] + sendMore()
    case .attempt(let number, let byteCount):
      onTheirWay.remove(byteCount)
      let attempt = transactions.attempts.removeValue(forKey: number)
      return (attempt.map { answered($0.ids, refusal) } ?? []) + sendMore()
    case .registration(let number):
      guard registrations.removeValue(forKey: number) != nil else { return [] }
      return [.registered(number, refusal)]
    case .read(let number):
      guard let target = reads.removeValue(forKey: number) else { return [] }
      if let refusal { return [.got(read: number, .failure(refusal))] }
      guard let node = SyncText.node(body?["d"], at: DataPlace(target.path)) else {
        return [
          .got(read: number, .failure(.notUnderstood)), .fail("the answer to a read is no value"),
        ]
      }
      return [.got(read: number, .success(tree.shown(node, by: target)))]
    }
  }

  /// The write that an answer names; nil if it names none.
  private static func lsn(_ body: JSONMembers?) -> UInt64? {
    body?.object("d")?.integer("lsn").flatMap { UInt64(exactly: $0) }
  }

  private mutating func end(
    _ target: SyncedTree.Target, number: Int, _ refusal: SyncRefusal
  ) -> [Effect] {
    let (ended, requests) = tree.refused(number: number, target)
    for target in ended { uses[target] = nil }
    return ended.map { .ended($0, refusal) } + send(requests)
  }

  private func warnings(_ target: SyncedTree.Target, _ body: JSONMembers?) -> [Effect] {
    guard body?.object("d")?.strings("w").contains("no_index") == true else { return [] }
    return [.note("the rules declare no index for a query at \(target.path)")]
  }

  private mutating func push(_ action: String, _ body: JSONMembers?) -> [Effect] {
    guard let body else { return [.fail("a push has no body")] }
    switch action {
    case "d", "m":
      guard let place = SyncText.place(body) else { return [.fail("a push has no path")] }
      let tag = body.integer("t").flatMap { Int(exactly: $0) }
      if action == "d" {
        guard let node = SyncText.node(body["d"], at: place) else {
          return [.fail("a push is no value")]
        }
        return put(node, at: place, tag)
      }
      guard !place.isPriority, let entries = SyncText.entries(body["d"], at: place.path) else {
        return [.fail("a push is no update")]
      }
      if server != nil, let hash = body.string("h") {
        let later = body["then"].map { SyncText.entries($0, at: place.path) } ?? []
        guard let later else { return [.fail("a push is no update")] }
        return renew(entries, at: place, hash, later: later)
      }
      return changed(tree.merge(entries, at: place.path, tag: tag))
    case "c":
      guard let place = SyncText.place(body) else { return [.fail("a push has no path")] }
      return revoke(place.path, body)
    case "ac":
      return [
        .revoked(SyncRefusal(status: body.string("s") ?? "", text: body.string("d") ?? ""))
      ]
    case "sd": return [.note(body.string("msg") ?? "")]
    default:
      return [
        .note("the server sends something that is not known: \(RESTRequest.shortened(action))")
      ]
    }
  }

  private mutating func put(_ node: Node, at place: DataPlace, _ tag: Int?) -> [Effect] {
    if case .listen(let target, let number, _)? = nextListen(),
      place == DataPlace(target.path), tree.tag(of: target) == tag
    {
      tree.noteNews(number: number)
    }
    return changed(tree.put(node, at: place, tag: tag))
  }

  /// The listen that is answered next: the server answers them in their order. What comes before is for listens that were
  /// there before.
  private mutating func nextListen() -> Awaited? {
    while firstListen <= lastRequest, awaited[firstListen]?.listenNumber == nil { firstListen += 1 }
    return awaited[firstListen]
  }

  /// The server sends the changes since the write that a listen has named. If the value does not get the hash, nothing of this
  /// connection counts any more, and the listens of the next one name no write.
  ///
  /// - Parameters:
  ///   - hash: of what is there with the entries.
  ///   - later: what has changed since then.
  private mutating func renew(
    _ entries: [PendingWrites.Entry], at place: DataPlace, _ hash: String,
    later: [PendingWrites.Entry]
  ) -> [Effect] {
    guard case .listen(let target, let number, let lsn)? = nextListen(), lsn > 0,
      target.parameters.showsAll, place == DataPlace(target.path)
    else { return [.fail("a push tells of changes that were not asked for")] }
    guard let node = tree.renewed(number: number, entries, hash: hash, later: later) else {
      tree.forgetHeard()
      return [.fail("what has changed at \(target.path) does not fit what is known")]
    }
    tree.noteNews(number: number)
    return changed(tree.put(node, at: place, tag: nil))
  }

  /// The server has ended listens.
  private mutating func revoke(_ path: Path, _ body: JSONMembers) -> [Effect] {
    var targets = [SyncedTree.Target(path)]
    if let queries = body["q"].flatMap({ JSONMembers.objects($0) }) {
      targets = queries.compactMap { query in
        (try? WireQuery.parameters(query)).map { SyncedTree.Target(path, $0).listened }
      }
    }
    return targets.flatMap { target in
      tree.listenNumber(of: target).map { end(target, number: $0, .permissionDenied) } ?? []
    }
  }

  /// The transactions at and above what has changed may have another input now, and so those below.
  mutating func changed(_ steps: [SyncedTree.Step]) -> [Effect] {
    var effects = steps.map { Effect.changed($0) }
    if transactions.items.isEmpty { return effects }
    // Each transaction listens at its location.
    for path in Set(steps.map(\.target.path)) { effects += runTransactions(at: path) }
    return effects
  }
}
