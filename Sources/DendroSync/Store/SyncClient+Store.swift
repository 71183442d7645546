import Dendro
import DendroEngine
import DendroProtocol
import DendroTree
import Dispatch

// What survives the process. A write of the application is kept before it shows; what a step has changed otherwise is kept,
// as one write of the log, before the lock of the step is released.

extension SyncClient {
  /// How soon what a disk has refused is tried again, in seconds.
  private static let retryDelay = 1

  /// Keeps a write that is about to be made.
  ///
  /// - Returns: why the disk does not take it; it is not kept then.
  func keep(_ write: SyncWrite, _ state: inout State) -> DatabaseError? {
    guard state.store != nil else { return nil }
    let number = state.dialogue.lastWrite + 1
    state.store?.keep(state.dialogue.outgoing(write), number: number)
    guard let refusal = state.store?.savePending() else { return nil }
    state.store?.remove(write: number)
    return DatabaseError(refusal)
  }

  /// Keeps what a step has changed.
  func save(_ state: inout State, _ due: inout Due) {
    if state.store?.isRefused != false { return }
    if let refusal = saveNow(&state) {
      if case .writeTooLarge = refusal { return dropCache(&state, &due) }
      return noteRefusal(refusal, &state, &due)
    }
    guard let store = state.store, store.unboundedByteCount > cacheByteCount() / 16 else { return }
    state.store?.unboundedByteCount = 0
    // It may take some milliseconds, which no call is to wait for.
    Self.timers.async { [weak self] in
      guard let self else { return }
      self.step { state, due in self.prune(&state, &due) }
    }
  }

  /// Brings the cache under its limit. The step saves it.
  private func prune(_ state: inout State, _ due: inout Due) {
    let count = state.prune(to: cacheByteCount())
    if count == 0 { return }
    log("the cache gives back \(count) locations and queries that were not used for longest", &due)
  }

  /// What the server says is too large for a write of the log: it is not kept.
  private func dropCache(_ state: inout State, _ due: inout Due) {
    state.dialogue.cache?.forgetAll()
    log("what the server says is too large to be kept", &due)
    if let refusal = saveNow(&state) { noteRefusal(refusal, &state, &due) }
  }

  private func saveNow(_ state: inout State) -> EngineError? {
    guard state.store != nil, var cache = state.dialogue.cache else { return nil }
    // Not held twice while it changes.
    state.dialogue.cache = nil
    defer { state.dialogue.cache = cache }
    return state.store?.save(&cache) { [weak self] error in
      // It may be called within a call of this client.
      Self.timers.async { [weak self] in
        guard let self else { return }
        self.step { state, due in self.noteRefusal(error, &state, &due) }
      }
    }
  }

  /// The disk has refused what was to be kept: it is tried again.
  private func noteRefusal(_ error: EngineError, _ state: inout State, _ due: inout Due) {
    if case .closed = error { return }
    if state.isClosed || state.store?.isRefused != false { return }
    state.store?.isRefused = true
    if state.store?.isRefusalReported == false {
      state.store?.isRefusalReported = true
      due.calls.append { [observer] in observer.report(DatabaseError(error)) }
    }
    Self.timers.asyncAfter(deadline: .now() + .seconds(Self.retryDelay)) { [weak self] in
      self?.step { state, _ in state.store?.isRefused = false }
    }
  }
}

extension SyncClient.State {
  /// Begins with what earlier runs have kept.
  mutating func restore(from store: SyncStore) {
    var store = store
    dialogue.cache = store.loadCache()
    dialogue.numbering = WriteNumbering(
      client: store.clientID { SyncClient.drawHexadecimal(byteCount: 16) },
      incarnation: SyncClient.drawHexadecimal(byteCount: 8))
    dialogue.knownServer = store.knownServer
    for (number, write) in store.loadPending() { dialogue.restore(write, number: number) }
    dialogue.resumeRestored()
    self.store = store
  }

  fileprivate mutating func prune(to limit: Int) -> Int {
    // Not held twice while it changes.
    guard var cache = dialogue.cache else { return 0 }
    dialogue.cache = nil
    defer { dialogue.cache = cache }
    return cache.prune(to: limit) { dialogue.tree.isListened($0) }
  }
}
