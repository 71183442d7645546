import Dendro
import DendroEngine
import DendroProtocol
import DendroTree
import Synchronization

// What is to be written when the client leaves: it is kept until then, and written at the end.

extension WireSession {
  /// Answers a change of what is to be written at the end once it is as durable as the database makes its writes.
  func keep(_ request: DisconnectJournal.Request, _ number: Int64) {
    let refusal = kept.withLock { session -> RESTError? in
      guard session != nil else { return RESTError(503, "The session has ended.") }
      let journal = namespace.journal
      if let journal, hasLostEntry.exchange(false, ordering: .acquiring) {
        client.reset(to: journal.operations(of: id))
      }
      do throws(DatabaseError) {
        switch request {
        case .register(let draft):
          guard try client.register(draft, upTo: service.sessionByteLimit) else {
            return .tooMuchKept
          }
        case .cancel(let path):
          guard try client.cancel(path, upTo: service.sessionByteLimit) else {
            return .tooMuchKept
          }
          // A session that has kept nothing has nothing to take back.
          if session?.isKept == false {
            answer(number)
            return nil
          }
        }
      } catch {
        return RESTError(error)
      }
      guard let journal else {
        answer(number)
        return nil
      }
      let neededByteCount = client.operations.byteCount
      journal.keep(request, of: id, &session!, neededByteCount: neededByteCount) { [self] isKept in
        if isKept { return answer(number) }
        hasLostEntry.store(true, ordering: .releasing)
        refuse(number, RESTError(503, "The operation could not be kept on the disk."))
      }
      return nil
    }
    guard let refusal else { return }
    refuse(number, refusal, status: refusal == .tooMuchKept ? "too_big" : nil)
  }

  // MARK: The end

  /// Closes the connection, whose end ends the session.
  func close() { connection.close(1000) }

  /// The connection is gone: writes what was to be written then.
  func end() {
    let (isFirst, listens, identity) = state.withLock { state in
      defer {
        state.isEnded = true
        state.listens = [:]
        state.lagging = [:]
        state.heldAnswers = []
      }
      return (!state.isEnded, state.listens, state.authentication.identity)
    }
    guard isFirst else { return }
    for listen in listens.values { listen.stop(namespace.hub) }
    service.sessions.remove(self)
    kept.withLock { session in
      let isKept = session?.isKept == true
      session = nil
      let registered = client.finish()
      if isKept, let journal = namespace.journal {
        journal.end(id) { allowed(of: $0, by: identity) }
      } else if let draft = registered.flatMap({ allowed(of: $0, by: identity) }) {
        namespace.engine.submit(draft) { [client] result in
          guard case .failure(let error) = result else { return }
          if case .closed = error { return }
          client.report(error)
        }
      }
    }
  }

  /// Judges the last writes again, one by one, by the rules of this moment.
  ///
  /// - Complexity: O(entries and server values).
  private func allowed(of draft: Draft, by identity: Identity) -> Draft? {
    guard case .update(let base, let entries) = draft.write else { return nil }
    let places = Set(entries.map(\.path))
    // At most 32 steps down for each, whatever the number of entries.
    let serverValues = Dictionary(grouping: draft.deferred) { item in
      (0...item.path.count).lazy.map(item.path.prefix).first(where: places.contains)
    }
    let allowed = entries.filter { entry in
      service.authorizer.admits(
        AuthorizationRequest(
          .write, at: base.appending(entry.path), by: identity,
          draft: Draft(.update(base, [entry]), deferred: serverValues[entry.path] ?? []),
          in: namespace.database))
    }
    if allowed.isEmpty { return nil }
    if allowed.count == entries.count { return draft }
    let deferred = Set(allowed.map(\.path)).flatMap { serverValues[$0] ?? [] }
    return Draft(.update(base, allowed), deferred: deferred)
  }
}

extension RESTError {
  fileprivate static let tooMuchKept = RESTError(
    503, "The session has too much to be written at its end.")
}
