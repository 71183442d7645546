import Dendro
import DendroEngine
import DendroProtocol
import DendroStorage
import DendroTree

/// One request with everything that performing it needs.
struct RESTCall: Sendable {
  let exchange: Exchange
  let request: RESTRequest
  let authentication: Authentication
  let service: RESTService

  /// A body or a window above this takes too long for the connection's thread.
  private static let inlineLimit = 64 << 10

  var identity: Identity { authentication.identity }

  func refuse(_ error: RESTError) { exchange.finish(RESTAnswer(error, to: request)) }

  func perform(in namespace: Namespace) {
    if namespace.isShared { exchange.tellLSN { namespace.engine.head.lsn.rawValue } }
    switch request.resource {
    case .data(let path), .priority(let path):
      // What is not in memory yet is read from the disk: not on the thread of other connections.
      if request.method.isWrite {
        let reads = request.conditions.ifMatch != nil && !namespace.isLoaded
        runInBackground(reads || exchange.body.count > Self.inlineLimit) { write(path, namespace) }
      } else {
        whenShown(request.atLeast, in: namespace) {
          runInBackground(!namespace.isLoaded) { read(path, namespace) }
        }
      }
    case .settings(let name): answerSettings(name, namespace)
    case .databases: answerDatabases()
    case .status: answerStatus()
    }
  }

  func answerDatabases() {
    guard identity.isAdministrator, service.mayInspect(identity) else {
      return refuse(.permissionDenied)
    }
    answer(
      text: "[" + service.namespaces.names.map { "{\"name\":\"\($0)\"}" }.joined(separator: ",")
        + "]")
  }

  /// Answers from what is left of a database that cannot be opened, if it is damaged.
  func perform(because error: any Error) {
    guard (error as? DatabaseError)?.isDamage == true, request.isForDatabase else {
      return refuse(RESTError(error))
    }
    if request.method.isWrite { return refuse(Losses.ofWriting) }
    guard let remains = service.namespaces.remains(of: request.namespace) else {
      return refuse(RESTError(error))
    }
    perform(in: remains)
  }

  /// Returns what is to be called with the result of a write. It calls `body`, and counts how long the write took. If PostgreSQL
  /// does not answer in time, the client learns that the outcome is not known.
  func acknowledged<R>(
    in namespace: Namespace, _ body: @escaping @Sendable (R) -> Void
  ) -> @Sendable (R) -> Void {
    let start = ContinuousClock.now
    let writes = service.figures.writes
    let id = namespace.isShared ? namespace.unanswered.add { refuse(.outcomeUnknown) } : nil
    return { result in
      if let id { namespace.unanswered.remove(id) }
      writes.observe(since: start)
      body(result)
    }
  }

  func answer(text: String) { exchange.finish(RESTAnswer(text: text, request)) }

  private func runInBackground(_ isLong: Bool, _ body: @escaping @Sendable () -> Void) {
    if isLong { service.workers.async(execute: body) } else { body() }
  }

  /// Calls `body`, which does not wait for the disk: if it takes long, when it is this client's turn.
  ///
  /// - Parameter isWritten: whether something was written for the request. If not, and the client has left by then, `body` is
  ///   not called.
  func inTurn(
    _ isLong: Bool, _ namespace: Namespace, isWritten: Bool = false,
    _ body: @escaping @Sendable () -> Void
  ) {
    guard isLong else { return body() }
    namespace.turns.async(for: exchange.turnClient, at: exchange.address) {
      if !isWritten, exchange.isOver { return refuse(RESTError(499, "The client has left.")) }
      body()
    }
  }

  // MARK: Reading

  private func read(_ path: Path, _ namespace: Namespace) {
    let pinned = namespace.engine.pin()
    let verdict = service.rights(in: namespace).verdict(
      reading: path, request.query, by: identity, on: pinned, wantsTrace: wantsTrace)
    if let error = RESTError(reading: verdict) { return refuse(error, verdict) }
    if let refusal = namespace.losses?.refusal(ofReading: path) { return refuse(refusal) }
    // A listen needs it too: from then on all of it is in memory.
    let node: Node
    do throws(EngineError) {
      node = try pinned.node.whole { $0.node(at: path) }
    } catch {
      return refuse(RESTError(error))
    }
    if request.wantsStream {
      return inTurn(service.readLimit.isNear(node), namespace) {
        if service.readLimit.isExceeded(by: node, request.query) { return refuse(.readTooLarge) }
        let access = ReadAccess(
          authentication: authentication, address: exchange.address, namespace: namespace,
          path: path, query: request.query)
        stream(path, namespace, access)
      }
    }
    let conditions = request.conditions
    let isLong =
      (conditions.wantsETag || conditions.ifNoneMatch != nil) && TreeHash.takesLong(node)
      || request.query.map { node.filteringCost($0) > 1_000 } ?? false
      || request.isShallow && node.childCount > 1_000
    inTurn(isLong, namespace) {
      let shown = RESTAnswer.shown(node, request)
      inTurn(!request.isShallow && service.readLimit.isNear(shown), namespace) {
        if !request.isShallow, service.readLimit.isExceeded(by: shown) {
          return refuse(.readTooLarge)
        }
        exchange.finish(traced(RESTAnswer(reading: node, shown: shown, request), verdict))
      }
    }
  }

  /// What a reading of a database gets that is not there: as if it were there, and empty. The rules for all databases decide;
  /// it has none of its own.
  private var verdictOnNothing: AuthorizationVerdict {
    guard let path = request.resource.path else { return .deny }
    let set = service.authorizer.yieldsToRules ? service.commonRules?.current : nil
    return RequestedRead(
      path: path, query: request.query, identity: identity, wantsTrace: wantsTrace
    ).verdict(
      of: service.authorizer, set, in: service.namespaces.name(of: request.namespace),
      on: HeadNode(.empty), time: systemMilliseconds(), .unknown())
  }

  var mayReadNothing: Bool { RESTError(reading: verdictOnNothing) == nil }

  /// Answers a reading of a database that is not there. None is made for it: a page of a stranger can have a browser send one.
  func readNothing() {
    if let refusal = service.namespaces.refusal(ofMaking: request.namespace) {
      return refuse(RESTError(refusal))
    }
    let verdict = verdictOnNothing
    if let error = RESTError(reading: verdict) { return refuse(error, verdict) }
    exchange.finish(traced(RESTAnswer(reading: .empty, request), verdict))
  }

  private func stream(_ path: Path, _ namespace: Namespace, _ access: ReadAccess) {
    if let known = request.lastEventID {
      return service.workers.async { resume(after: known, at: path, in: namespace, access) }
    }
    begin(EventStream(request, access, backlogByteLimit: service.backlogByteLimit), path, namespace)
  }

  /// Begins a stream with what has changed since write `known`, if that state is still kept.
  private func resume(
    after known: UInt64, at path: Path, in namespace: Namespace, _ access: ReadAccess
  ) {
    let root = try? namespace.engine.root(
      at: .lsn(LogSequenceNumber(known)), isCancelled: { false })
    guard let root = root.flatMap({ $0 }) else {
      return begin(
        EventStream(request, access, backlogByteLimit: service.backlogByteLimit), path, namespace)
    }
    let whole = root.node(at: path)
    let old = whole.filtered(by: request.query)
    let stream = EventStream(request, access, backlogByteLimit: service.backlogByteLimit) { new in
      var parts: [(path: Path, node: Node)] = []
      Node.difference(from: old, to: new) { path, _, new in parts.append((path, new)) }
      return PlaceChange(parts).map { .changed($0) } ?? .unchanged
    }
    begin(stream, path, namespace)
  }

  private func begin(_ stream: EventStream, _ path: Path, _ namespace: Namespace) {
    guard service.add(stream) else {
      return refuse(RESTError(503, "The server is shutting down."))
    }
    exchange.finish(.stream(RESTAnswer(stream: request), stream))
    stream.listen(path, request.query, namespace.hub)
    // A right that has ended since it was asked for was not found with the others.
    if service.authenticator.end(of: authentication) != nil {
      stream.end(with: .authRevoked)
    } else if let error = service.refusal(of: stream.access) {
      stream.end(with: .cancel(error.text))
    }
  }

  // MARK: Writing

  private func write(_ path: Path, _ namespace: Namespace) {
    if let refusal = namespace.refusalToWrite { return refuse(refusal) }
    let key = request.method == .post ? namespace.database.newPushID() : nil
    let place = key.flatMap { try? Key($0) }.map(path.appending) ?? path
    let draft: Draft
    let encoded: EncodedWrite
    do {
      let result = exchange.body.withUnsafeBytes { bytes in
        Result { () throws(RESTError) in try RESTBody.draft(request, bytes, at: place) }
      }
      draft = try result.get()
      if exchange.body.count > WriteSizeLimit.freeByteCount {
        let limit = request.writeSizeLimit ?? namespace.settings.writeSizeLimit
        if limit.isExceeded(by: draft, byteCount: exchange.body.count) {
          return refuse(.writeTooLarge)
        }
      }
      encoded = try EncodedWrite(validating: draft)
    } catch let error as RESTError {
      return refuse(error)
    } catch let error as ValidationError {
      return refuse(.badRequest("Invalid data; \(error.message)"))
    } catch {
      return refuse(.internalError)
    }
    if namespace.passesOn { return passOn(encoded, draft, at: place, key: key, in: namespace) }
    let judge: RequestedWrite?
    let rights = service.rights(in: namespace)
    switch rights.admission(
      of: encoded, draft.locations, at: place, by: identity, alsoReads: showsData(draft),
      wantsTrace: wantsTrace)
    {
    case .refused(let verdict):
      return refuse(RESTError(writing: verdict) ?? .permissionDenied, verdict)
    case .free: judge = nil
    case .judged(let write): judge = write
    }
    if request.conditions.ifMatch != nil || needsResult(draft) {
      // If the ETag is another one, nothing is written, and nothing judged.
      if showsData(draft), refusesReading(place, in: namespace) { return }
      return transact(draft, judge, at: place, key: key, in: namespace)
    }
    let isShort =
      exchange.body.count <= Self.shortByteCountMax
      && encoded.trees.isEmpty && encoded.logByteCount <= Self.shortByteCountMax
    let body = repeatedBody
    let completion = acknowledged(in: namespace) {
      (result: Result<LogSequenceNumber?, EngineError>) in
      // After the events of this write, as listeners of the same client expect it.
      namespace.hub.afterEvents(isShort: isShort) {
        switch result {
        case .success:
          inTurn(hashesLong(draft), namespace, isWritten: true) {
            exchange.finish(traced(answer(draft, key, body), judge?.verdict))
          }
        case .failure(let error):
          refuseWrite(DatabaseError(served: error), judge, in: namespace)
        }
      }
    }
    if let judge {
      namespace.engine.submit(encoded, judge: judge, completion: completion)
    } else {
      namespace.engine.submit(encoded, completion: completion)
    }
  }

  /// Refuses a request that shows what is at a place, if the client may not read it.
  func refusesReading(_ place: Path, in namespace: Namespace) -> Bool {
    let verdict = service.rights(in: namespace).verdict(
      reading: place, nil, by: identity, on: namespace.engine.pin(), wantsTrace: wantsTrace)
    guard let error = RESTError(reading: verdict) else { return false }
    refuse(error, verdict)
    return true
  }

  /// A write of at most so many bytes is answered on the commit thread. Its request has no more either: a long one may
  /// write little, and the answer to a PATCH is made of its text.
  private static let shortByteCountMax = 1 << 10

  private func refuseWrite(
    _ error: DatabaseError, _ judge: RequestedWrite?, in namespace: Namespace
  ) {
    guard error.code == .permissionDenied, let verdict = judge?.verdict else {
      return refuse(namespace.refusal(notLeading: error) ?? RESTError(writing: error))
    }
    refuse(RESTError(writing: verdict) ?? .permissionDenied, verdict)
  }

  // MARK: How rules have decided

  /// Whether the answer says how rules have decided: what they are is for administrators.
  var wantsTrace: Bool {
    // The server has refused the override of every client that is no administrator.
    request.wantsTrace && (identity.isAdministrator || request.credentials.authOverride != nil)
  }

  /// An answer with how rules have decided, if that was asked for.
  func traced(_ answer: RESTAnswer, _ verdict: AuthorizationVerdict?) -> RESTAnswer {
    guard wantsTrace, let trace = verdict?.trace else { return answer }
    var answer = answer
    var bytes: [UInt8] = []
    JSONText.append(string: String(trace.prefix(Self.traceLengthMax)), to: &bytes)
    answer.headers.append("X-Firebase-Auth-Debug", String(decoding: bytes, as: UTF8.self))
    return answer
  }

  func refuse(_ error: RESTError, _ verdict: AuthorizationVerdict) {
    exchange.finish(traced(RESTAnswer(error, to: request), verdict))
  }

  /// The most characters of it: it is a header field.
  private static let traceLengthMax = 4096

  /// Whether the answer shows what was there.
  func showsData(_ draft: Draft) -> Bool {
    if request.conditions.ifMatch != nil { return true }
    guard needsResult(draft) else { return false }
    if case .increment = draft.write { return true }
    return draft.deferred.contains { if case .increment = $0.value { true } else { false } }
  }

  /// Whether the answer shows what server values have become.
  func needsResult(_ draft: Draft) -> Bool {
    guard request.method == .put || (request.method == .post && request.conditions.wantsETag),
      request.print != .silent || request.conditions.wantsETag
    else { return false }
    if case .increment = draft.write { return true }
    return !draft.deferred.isEmpty
  }

  /// Whether the answer to a write has an ETag that takes long.
  func hashesLong(_ draft: Draft) -> Bool {
    guard request.conditions.wantsETag, case .set(_, let node) = draft.write else { return false }
    return TreeHash.takesLong(node)
  }

  /// What the answer to a write repeats of the request's body. The exchange has none any more if it was given up.
  var repeatedBody: [UInt8] { request.method == .patch ? exchange.body : [] }

  /// - Parameter body: `repeatedBody`, as it was before the write was made.
  func answer(_ draft: Draft, _ key: String?, _ body: [UInt8]) -> RESTAnswer {
    if let key {
      if case .set(_, let node) = draft.write { return RESTAnswer(posted: key, node, request) }
      return RESTAnswer(posted: key, .empty, request)
    }
    switch request.method {
    case .delete: return RESTAnswer(deleted: request)
    case .patch:
      return body.withUnsafeBytes { RESTAnswer(patched: $0, request) }
    default:
      switch draft.write {
      case .set(_, let node): return RESTAnswer(wrote: node, request)
      case .setPriority(_, let priority):
        return RESTAnswer(wrote: priority.map { Node($0) } ?? .empty, request)
      case .remove, .update, .increment: return RESTAnswer(wrote: .empty, request)
      }
    }
  }

  /// Writes in a transaction: only if the ETag is the one that the request names, and with the result.
  private func transact(
    _ draft: Draft, _ judge: RequestedWrite?, at place: Path, key: String?,
    in namespace: Namespace
  ) {
    guard let expected = request.conditions.ifMatch else {
      return transact(draft, judge, at: place, key: key, in: namespace) { _ in true }
    }
    let seen: Node
    do throws(EngineError) {
      seen = shown(try namespace.engine.view(at: place))
    } catch {
      return refuse(RESTError(error))
    }
    // Transactions run one after the other: in theirs, the state that has the ETag is only compared with that of then.
    inTurn(TreeHash.takesLong(seen), namespace) {
      let etag = TreeHash.etag(seen)
      if etag == expected {
        transact(draft, judge, at: place, key: key, in: namespace) { $0 == seen }
      } else {
        // Its size is looked at here: listeners wait for what is behind their events.
        let answer = preconditionFailed(seen, etag)
        namespace.hub.afterEvents(isShort: false) { exchange.finish(answer) }
      }
    }
  }

  private func transact(
    _ draft: Draft, _ judge: RequestedWrite?, at place: Path, key: String?,
    in namespace: Namespace, if isExpected: @escaping @Sendable (Node) -> Bool
  ) {
    typealias Outcome = Result<(isWritten: Bool, node: Node), DatabaseError>
    let completion = acknowledged(in: namespace) { (result: Outcome) in
      namespace.hub.afterEvents(isShort: false) {
        switch result {
        case .failure(let error): refuseWrite(error, judge, in: namespace)
        case .success(let outcome):
          let node = shown(outcome.node)
          let hashes = !outcome.isWritten || request.conditions.wantsETag
          inTurn(hashes && TreeHash.takesLong(node), namespace, isWritten: outcome.isWritten) {
            exchange.finish(answer(node, isWritten: outcome.isWritten, key))
          }
        }
      }
    }
    namespace.database.transact(
      at: place, judge: judge,
      decide: { isExpected(shown($0)) ? draft.asSet(over: $0) : nil },
      completion: completion)
  }

  /// - Parameter node: what is there after the transaction.
  func answer(_ node: Node, isWritten: Bool, _ key: String?) -> RESTAnswer {
    if !isWritten { return preconditionFailed(node, TreeHash.etag(node)) }
    if let key { return RESTAnswer(posted: key, node, request) }
    if request.method == .delete { return RESTAnswer(deleted: request) }
    return RESTAnswer(wrote: node, request)
  }

  private func preconditionFailed(_ node: Node, _ etag: String) -> RESTAnswer {
    let isTooLarge = service.readLimit.isExceeded(by: node)
    return RESTAnswer(
      preconditionFailed: request, current: isTooLarge ? nil : node, etag: etag)
  }

  /// What the request is about: the node, or its priority.
  func shown(_ node: Node) -> Node {
    if case .priority = request.resource { return node.priority.map { Node($0) } ?? .empty }
    return node
  }
}

extension Draft {
  /// The same as a set or a removal at its path, over the node that is there.
  func asSet(over current: Node) -> Draft {
    switch write {
    case .increment(let path, let delta):
      return Draft(.set(path, Node(delta.incrementing(current.scalar))))
    case .setPriority(let path, let priority):
      return Draft(
        .set(path, current.settingPriority(priority)),
        deferred: current.isEmpty ? [] : deferred)
    case .set, .remove, .update: return self
    }
  }
}
