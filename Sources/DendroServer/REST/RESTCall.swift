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
    switch request.resource {
    case .data(let path), .priority(let path):
      if request.method.isWrite {
        runInBackground(exchange.body.count > Self.inlineLimit) { write(path, namespace) }
      } else {
        // What is not in memory yet is read from the disk: not on the thread of other connections.
        runInBackground(!namespace.isLoaded) { read(path, namespace) }
      }
    case .settings(let name): answerSettings(name, namespace)
    case .databases:
      guard identity.isAdministrator else { return refuse(.permissionDenied) }
      answer(
        text: "[" + service.namespaces.names.map { "{\"name\":\"\($0)\"}" }.joined(separator: ",")
          + "]")
    case .status: answerStatus()
    }
  }

  /// Answers from what is left of a database that cannot be opened, if it is damaged.
  func perform(because error: any Error) {
    guard (error as? DatabaseError)?.code == .corrupt, request.isForDatabase else {
      return refuse(RESTError(error))
    }
    if request.method.isWrite { return refuse(Losses.ofWriting) }
    guard let remains = service.namespaces.remains(of: request.namespace) else {
      return refuse(RESTError(error))
    }
    perform(in: remains)
  }

  /// Calls `body`, and counts how long it takes until what it returns is called.
  private func acknowledged<R>(
    _ body: @escaping @Sendable (R) -> Void
  ) -> @Sendable (R) -> Void {
    let start = ContinuousClock.now
    let writes = service.figures.writes
    return { result in
      writes.observe(since: start)
      body(result)
    }
  }

  private func answer(text: String) { exchange.finish(RESTAnswer(text: text, request)) }

  private func runInBackground(_ isLong: Bool, _ body: @escaping @Sendable () -> Void) {
    if isLong { service.workers.async(execute: body) } else { body() }
  }

  // MARK: Reading

  private func read(_ path: Path, _ namespace: Namespace) {
    let asked = AuthorizationRequest(
      .read, at: path, by: identity, query: request.query, in: namespace.database)
    guard service.authorizer.admits(asked) else { return refuse(.permissionDenied) }
    if let refusal = namespace.losses?.refusal(ofReading: path) { return refuse(refusal) }
    // A listen needs it too: from then on all of it is in memory.
    let node: Node
    do throws(EngineError) {
      node = try namespace.engine.view(at: path)
    } catch {
      return refuse(RESTError(error))
    }
    if request.wantsStream {
      return stream(path, namespace, ReadAccess(authentication: authentication, request: asked))
    }
    let conditions = request.conditions
    let isLong =
      node.isBranch
      && (conditions.wantsETag || conditions.ifNoneMatch != nil
        || request.query.map { node.filteringCost($0) > 1_000 } ?? false
        || (request.isShallow && node.childCount > 1_000))
    runInBackground(isLong) { exchange.finish(RESTAnswer(reading: node, request)) }
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
    let old = request.query.map { whole.filtered(by: $0) } ?? whole
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
    } else if !service.authorizer.admits(stream.access.request) {
      stream.end(with: .cancel(RESTError.permissionDenied.text))
    }
  }

  // MARK: Writing

  private func write(_ path: Path, _ namespace: Namespace) {
    let key = request.method == .post ? namespace.database.newPushID() : nil
    let place = key.flatMap { try? Key($0) }.map(path.appending) ?? path
    let draft: Draft
    do {
      let result = exchange.body.withUnsafeBytes { bytes in
        Result { () throws(RESTError) in try RESTBody.draft(request, bytes, at: place) }
      }
      draft = try result.get()
      try draft.write.validate()
    } catch let error as RESTError {
      return refuse(error)
    } catch let error as ValidationError {
      return refuse(.badRequest("Invalid data; \(error.message)"))
    } catch {
      return refuse(.internalError)
    }
    let asked = AuthorizationRequest(
      .write, at: place, by: identity, draft: draft, in: namespace.database)
    guard service.authorizer.admits(asked) else { return refuse(.permissionDenied) }
    if request.conditions.ifMatch != nil || needsResult(draft) {
      return transact(draft, at: place, key: key, in: namespace)
    }
    let completion = acknowledged { (result: Result<LogSequenceNumber?, EngineError>) in
      // After the events of this write, as listeners of the same client expect it.
      namespace.hub.afterEvents {
        switch result {
        case .success: exchange.finish(answer(draft, key))
        case .failure(let error): refuse(RESTError(writing: DatabaseError(served: error)))
        }
      }
    }
    namespace.engine.submit(draft, completion: completion)
  }

  /// Whether the answer shows what server values have become.
  private func needsResult(_ draft: Draft) -> Bool {
    guard request.method == .put || (request.method == .post && request.conditions.wantsETag),
      request.print != .silent || request.conditions.wantsETag
    else { return false }
    if case .increment = draft.write { return true }
    return !draft.deferred.isEmpty
  }

  private func answer(_ draft: Draft, _ key: String?) -> RESTAnswer {
    if let key {
      if case .set(_, let node) = draft.write { return RESTAnswer(posted: key, node, request) }
      return RESTAnswer(posted: key, .empty, request)
    }
    switch request.method {
    case .delete: return RESTAnswer(deleted: request)
    case .patch:
      return exchange.body.withUnsafeBytes { RESTAnswer(patched: $0, request) }
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
  private func transact(_ draft: Draft, at place: Path, key: String?, in namespace: Namespace) {
    let request = request
    let expected = request.conditions.ifMatch
    let start = ContinuousClock.now
    let writes = service.figures.writes
    namespace.database.transact(at: place) { current in
      if let expected, TreeHash.etag(shown(current)) != expected { return nil }
      return draft.asSet(over: current)
    } completion: { result in
      writes.observe(since: start)
      namespace.hub.afterEvents {
        switch result {
        case .failure(let error): refuse(RESTError(writing: error))
        case .success(let outcome):
          let node = shown(outcome.node)
          if !outcome.isWritten {
            exchange.finish(RESTAnswer(preconditionFailed: request, current: node))
          } else if let key {
            exchange.finish(RESTAnswer(posted: key, node, request))
          } else if request.method == .delete {
            exchange.finish(RESTAnswer(deleted: request))
          } else {
            exchange.finish(RESTAnswer(wrote: node, request))
          }
        }
      }
    }
  }

  /// What the request is about: the node, or its priority.
  private func shown(_ node: Node) -> Node {
    if case .priority = request.resource { return node.priority.map { Node($0) } ?? .empty }
    return node
  }

  // MARK: Settings

  private func answerSettings(_ name: String, _ namespace: Namespace) {
    guard identity.isAdministrator else { return refuse(.permissionDenied) }
    guard ServerSettings.names.contains(name) else { return refuse(.notFound) }
    switch request.method {
    case .get, .head:
      answer(text: service.settings[namespace.name, name] ?? defaultSetting(name))
    case .put:
      guard name != "rules" || service.authorizer is OpenAuthorizer else {
        return refuse(RESTError(501, "This server decides by its own authorizer, not by rules."))
      }
      let text = String(validating: exchange.body, as: UTF8.self)
      guard let text, !text.isEmpty else { return refuse(.badRequest("Error: No data supplied.")) }
      if !request.isDryRun { service.settings[namespace.name, name] = text }
      answer(text: "{\"status\":\"ok\"}")
    default: refuse(RESTError(405, "A setting is read and written with GET and PUT."))
    }
  }

  private func defaultSetting(_ name: String) -> String {
    switch name {
    case "rules":
      let isOpen = service.authorizer is OpenAuthorizer
      return "{\n  \"rules\": {\n    \".read\": \(isOpen),\n    \".write\": \(isOpen)\n  }\n}\n"
    case "defaultWriteSizeLimit": return "\"large\""
    case "strictTriggerValidation": return "false"
    default: return "null"
    }
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
