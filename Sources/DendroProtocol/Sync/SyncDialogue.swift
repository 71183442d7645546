package import DendroTree

/// A client's side of the dialogue with a server, and the data that it keeps in step: what goes to the server, and what
/// comes of what the server says.
///
/// A value without sockets and clocks. Listens and writes may be made at any time; what has no connection waits for one.
package struct SyncDialogue: Sendable {
  /// What is to be done after a call, in order.
  package enum Effect: Sendable {
    /// A message for the server.
    case send([UInt8])
    /// What is known of a target has changed.
    case changed(SyncedTree.Step)
    /// A listen was refused, or ended by the server.
    case ended(SyncedTree.Target, SyncRefusal)
    /// A write has its answer; nil if the server has taken it. A conditional write whose connection was lost before the answer
    /// is refused as `disconnected`: the server may have made it.
    case answered(write: Int, SyncRefusal?)
    case got(read: Int, Result<Node, SyncRefusal>)
    case signedIn(SyncRefusal?)
    /// The credential is valid no more.
    case revoked(SyncRefusal)
    /// The connection is ready. The time is the server's, in milliseconds since 1970.
    case ready(session: String, time: Int64)
    /// The connection is to be closed, and one to this host to be made.
    case connectAgain(host: String)
    /// The connection is to be closed for good.
    case shutDown(String)
    /// The server says what no server says: the connection is to be closed.
    case fail(String)
    /// A line for the log.
    case note(String)
  }

  /// A write as it is sent.
  package struct Message: Sendable {
    /// `p` or `m`.
    let action: String
    /// The members of its body.
    let body: [UInt8]
    /// Whether it is made only if the server has what the client had.
    let isConditional: Bool

    /// - Parameters:
    ///   - isUpdate: whether it is an update, and no set.
    ///   - place: what is set, or the location of which parts are updated.
    ///   - data: JSON in export form, with its server values.
    ///   - hash: of what has to be there; nil for a write whatever is there.
    package init(
      isUpdate: Bool, at place: DataPlace, data: [UInt8], hash: String? = nil
    ) {
      action = isUpdate ? "m" : "p"
      isConditional = hash != nil
      var body = SyncText.body(place)
      body += ",\"d\":".utf8
      body += data
      if let hash {
        body += ",\"h\":".utf8
        JSONText.append(string: hash, to: &body)
      }
      self.body = body + [UInt8(ascii: "}")]
    }
  }

  package private(set) var tree = SyncedTree()
  private var phase = Phase.offline
  /// The number of the last request, over all connections.
  private var lastRequest = 0
  /// The requests of this connection without an answer.
  private var awaited: [Int: Awaited] = [:]
  /// None of them has a lower number.
  private var firstAwaited = 1
  /// The numbers of listens without an answer of which the server has said what is there.
  private var toldOtherwise: Set<Int> = []
  /// The writes without an answer.
  private var writes: [Int: Message] = [:]
  /// The last one that was sent over this connection.
  private var lastSentWrite = Int.min
  private var reads: [Int: SyncedTree.Target] = [:]
  private var lastRead = 0
  private var credential: SyncCredential?
  /// Names this client to the server, as `sdk.js.12-18-0` does; it says so once.
  private let software: String
  private var hasSaidSoftware = false

  private enum Phase {
    case offline
    /// The server speaks first.
    case opening
    case ready
  }

  private enum Awaited {
    case listen(SyncedTree.Target, number: Int)
    case write(Int)
    case read(Int)
    case signIn
    case other
  }

  package init(software: String) { self.software = software }

  package var isReady: Bool { phase == .ready }

  // MARK: The connection

  /// A connection was made.
  package mutating func opened() { phase = .opening }

  /// The connection is gone.
  package mutating func lost() -> [Effect] {
    phase = .offline
    awaited = [:]
    toldOtherwise = []
    let unknown = writes.filter { $0.value.isConditional && $0.key <= lastSentWrite }.keys.sorted()
    lastSentWrite = .min
    return unknown.flatMap { number -> [Effect] in
      // It is not sent again.
      writes[number] = nil
      return tree.answered(number: number, isAccepted: false).map { .changed($0) }
        + [.answered(write: number, .disconnected)]
    }
  }

  /// What waits for the connection goes in the order in which the server needs it.
  private mutating func begin() -> [Effect] {
    phase = .ready
    var effects: [Effect] = []
    if !hasSaidSoftware {
      hasSaidSoftware = true
      var body = Array("{\"c\":{".utf8)
      JSONText.append(string: software, to: &body)
      effects.append(request("s", body + Array(":1}}".utf8), .other))
    }
    if let credential { effects.append(request(credential.action, credential.body, .signIn)) }
    effects += send(tree.listens())
    for number in writes.keys.sorted() { effects += send(write: number) }
    for (number, target) in reads.sorted(by: { $0.key < $1.key }) {
      effects.append(request("g", SyncText.read(target), .read(number)))
    }
    return effects
  }

  private mutating func request(
    _ action: String, _ body: [UInt8], _ awaits: Awaited
  ) -> Effect {
    lastRequest += 1
    awaited[lastRequest] = awaits
    return .send(SyncText.request(lastRequest, action, body))
  }

  private mutating func send(_ requests: [SyncedTree.Request]) -> [Effect] {
    guard phase == .ready else { return [] }
    return requests.map { listenOrStop in
      switch listenOrStop {
      case .listen(let target, let number, let tag, let known):
        request(
          "q", SyncText.listen(target, tag, hash: TreeHash.hash(known)),
          .listen(target, number: number))
      case .stop(let target, let tag): request("n", SyncText.stop(target, tag), .other)
      }
    }
  }

  private mutating func send(write number: Int) -> [Effect] {
    guard let message = writes[number] else { return [] }
    lastSentWrite = number
    return [request(message.action, message.body, .write(number))]
  }

  // MARK: What the client wants

  /// Begins to show a target.
  package mutating func begin(_ target: SyncedTree.Target) -> [Effect] {
    let requests = tree.begin(target)
    return send(requests)
  }

  /// Shows a target no more.
  package mutating func end(_ target: SyncedTree.Target) -> [Effect] {
    let requests = tree.end(target)
    return send(requests)
  }

  /// Writes: listeners see it at once.
  ///
  /// - Parameter number: above those of the writes before it.
  package mutating func write(
    _ write: PendingWrites.Write, number: Int, _ message: Message
  ) -> [Effect] {
    let steps = tree.write(write, number: number)
    writes[number] = message
    return steps.map { .changed($0) } + (phase == .ready ? send(write: number) : [])
  }

  /// Asks the server what is at a target.
  ///
  /// - Returns: the number of the reading, which its answer has.
  package mutating func read(_ target: SyncedTree.Target) -> (number: Int, effects: [Effect]) {
    lastRead += 1
    reads[lastRead] = target
    guard phase == .ready else { return (lastRead, []) }
    return (lastRead, [request("g", SyncText.read(target), .read(lastRead))])
  }

  /// Gives up a reading that has no answer yet.
  package mutating func giveUp(read number: Int) { reads[number] = nil }

  /// Takes back all writes without an answer, the last first.
  package mutating func purge() -> [Effect] {
    let numbers = writes.keys.sorted(by: >)
    writes = [:]
    return numbers.flatMap { number -> [Effect] in
      tree.answered(number: number, isAccepted: false).map { .changed($0) }
        + [.answered(write: number, .canceled)]
    }
  }

  /// Signs in from now on, or out.
  package mutating func signIn(_ new: SyncCredential?) -> [Effect] {
    let wasSignedIn = credential != nil
    credential = new
    guard phase == .ready else { return [] }
    if let new { return [request(new.action, new.body, .signIn)] }
    return wasSignedIn ? [request("unauth", Array("{}".utf8), .other)] : []
  }

  // MARK: What the server says

  /// - Parameter message: whole.
  package mutating func receive(_ message: [UInt8]) -> [Effect] {
    guard let envelope = WireEnvelope(message) else { return [.fail("a message is no object")] }
    switch envelope.type {
    case "c": return control(message, envelope.kind)
    case "d":
      if let number = envelope.number { return answer(Int(number), envelope.body) }
      return push(envelope.action ?? "", envelope.body)
    default: return [.fail("a message has no type")]
    }
  }

  private mutating func control(_ message: [UInt8], _ kind: String?) -> [Effect] {
    let members = JSONMembers(message[...])?.object("d")
    switch kind {
    case "h":
      guard phase == .opening, let hello = members?.object("d"),
        let time = hello.integer("ts"), let session = hello.string("s")
      else { return [.fail("the hello says no time and no session")] }
      return [.ready(session: session, time: time)] + begin()
    case "r": return [.connectAgain(host: members?.string("d") ?? "")]
    case "s": return [.shutDown(members?.string("d") ?? "")]
    case "e": return [.note("the server reports an error: \(members?.string("d") ?? "")")]
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
    case .signIn: return [.signedIn(refusal)]
    case .listen(let target, let number):
      guard let refusal else {
        let isAsTold = toldOtherwise.remove(number) == nil
        return warnings(target, body)
          + tree.listened(number: number, target, isAsTold: isAsTold).map { .changed($0) }
      }
      return end(target, number: number, refusal)
    case .write(let number):
      guard writes.removeValue(forKey: number) != nil else { return [] }
      return tree.answered(number: number, isAccepted: refusal == nil).map { .changed($0) }
        + [.answered(write: number, refusal)]
    case .read(let number):
      guard reads.removeValue(forKey: number) != nil else { return [] }
      if let refusal { return [.got(read: number, .failure(refusal))] }
      guard let node = SyncText.node(body?["d"]) else {
        return [.fail("the answer to a reading is no value")]
      }
      return [.got(read: number, .success(node))]
    }
  }

  private mutating func end(
    _ target: SyncedTree.Target, number: Int, _ refusal: SyncRefusal
  ) -> [Effect] {
    let (ended, requests) = tree.refused(number: number, target)
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
        guard let node = SyncText.node(body["d"]) else { return [.fail("a push is no value")] }
        return put(node, at: place, tag)
      }
      guard let entries = body.object("d").flatMap(SyncText.entries), !place.isPriority else {
        return [.fail("a push is no update")]
      }
      return tree.merge(entries, at: place.path, tag: tag).map { .changed($0) }
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
    // The server answers in the order of the requests. What comes before is for listens that were there before.
    while firstAwaited <= lastRequest, awaited[firstAwaited] == nil { firstAwaited += 1 }
    if case .listen(let target, let number)? = awaited[firstAwaited],
      place == DataPlace(target.path), tree.tag(of: target) == tag
    {
      toldOtherwise.insert(number)
    }
    return tree.put(node, at: place, tag: tag).map { .changed($0) }
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
}

/// Why a server refuses something.
package struct SyncRefusal: Error, Hashable, Sendable {
  /// As the protocol has it: `permission_denied`.
  package let status: String
  package let text: String

  package init(status: String, text: String) {
    self.status = status
    self.text = text
  }

  static let permissionDenied = SyncRefusal(status: "permission_denied", text: "Permission denied")
  /// The server may have made the write.
  static let disconnected = SyncRefusal(
    status: "disconnected", text: "The connection was lost before the answer.")
  static let canceled = SyncRefusal(status: "write_canceled", text: "The write was taken back.")
}

/// By what a client signs in.
package enum SyncCredential: Hashable, Sendable {
  /// An ID token of a user.
  case user(token: String)
  /// A token of an administrator, or `owner` for an emulator, and perhaps as whom rules see it, as JSON.
  case administrator(token: String, override: String?)

  fileprivate var action: String { if case .user = self { "auth" } else { "gauth" } }

  fileprivate var body: [UInt8] {
    var body = Array("{\"cred\":".utf8)
    switch self {
    case .user(let token): JSONText.append(string: token, to: &body)
    case .administrator(let token, let override):
      JSONText.append(string: token, to: &body)
      if let override { body += ",\"authvar\":\(override)".utf8 }
    }
    return body + [UInt8(ascii: "}")]
  }
}
