import Dendro
import DendroEngine
import DendroProtocol
import DendroTree
import Synchronization

/// What a client keeps in a directory: the data that its server has said, which are the tree, and in the second root what is
/// about the client (``SyncRecords``).
///
/// What is to be kept is at hand as two trees. `save` writes how they differ from those of the engine, as one write. So a
/// step of the dialogue is kept as a whole or not at all, and what a full disk has refused is in the next save.
struct SyncStore: Sendable {
  private let engine: Engine
  /// What is under `sync`.
  private var node: Node
  /// The keys of the tracked targets.
  private var targetKeys: [QueryTarget: Key] = [:]
  private var lastTargetKey = 0
  /// Whether the disk has refused a save, which was not made up for yet.
  var isRefused = false
  /// Whether the application knows of it.
  var isRefusalReported = false
  /// About the bytes of data that were saved since the limit of the cache was looked at.
  var unboundedByteCount = 0

  init(_ engine: Engine) {
    self.engine = engine
    node = engine.systemNode(at: SyncedDirectory.root)
  }

  // MARK: Loading

  /// What the server has said.
  mutating func loadCache() -> SyncCache {
    var targets: [QueryTarget: SyncCache.Target] = [:]
    for (key, item) in node.child(SyncRecords.targets).children {
      lastTargetKey = max(lastTargetKey, SyncRecords.number(key) ?? 0)
      guard let (target, value) = SyncRecords.target(item), targets[target] == nil else { continue }
      targetKeys[target] = key
      targets[target] = value
    }
    return SyncCache(engine.head.root, targets)
  }

  /// The writes without an answer, in their order.
  func loadPending() -> [(number: Int, write: OutgoingWrite)] { SyncRecords.writes(in: node) }

  /// What a server that makes numbered writes once has said last.
  var knownServer: KnownServer? {
    get { SyncRecords.knownServer(in: node) }
    set { if let newValue { SyncRecords.put(newValue, into: &node) } }
  }

  /// By which a server tells the client from others. It is drawn at first.
  mutating func clientID(drawing draw: () -> String) -> String {
    if let id = SyncRecords.clientID(in: node) { return id }
    let id = draw()
    set(SyncRecords.client, Node(.string(id)))
    return id
  }

  /// The user who signed in last; nil if none is known.
  var lastUser: SyncUser? {
    get { SyncRecords.lastUser(in: node) }
    set { set(SyncRecords.user, newValue.map { Node(.string($0.text)) } ?? .empty) }
  }

  // MARK: Changing

  mutating func keep(_ write: OutgoingWrite, number: Int) {
    set(SyncRecords.pending, Key(number), SyncRecords.node(write))
  }

  /// Notes of a write that it was sent, or that it is held.
  mutating func mark(write number: Int, _ mark: Key, _ value: Node) {
    let place = Path.root.appending(SyncRecords.pending).appending(Key(number))
    if node.node(at: place).isEmpty { return }
    node.graft(value, at: place.appending(mark))
  }

  mutating func remove(write number: Int) {
    set(SyncRecords.pending, Key(number), .empty)
  }

  mutating func setUser(_ user: SyncUser, ofWrite number: Int) {
    let place = Path.root.appending(SyncRecords.pending).appending(Key(number))
    if node.node(at: place).isEmpty { return }
    node.graft(Node(.string(user.text)), at: place.appending(SyncRecords.user))
  }

  private mutating func note(
    _ target: QueryTarget, _ change: SyncCache.Change, _ cache: SyncCache
  ) {
    guard let value = cache[target] else {
      if let key = targetKeys.removeValue(forKey: target) { set(SyncRecords.targets, key, .empty) }
      return
    }
    guard let key = targetKeys[target], case .parts(let keys) = change else {
      if targetKeys[target] == nil { lastTargetKey += 1 }
      let key = targetKeys[target] ?? Key(lastTargetKey)
      targetKeys[target] = key
      return set(SyncRecords.targets, key, SyncRecords.node(target, value))
    }
    let place = Path.root.appending(SyncRecords.targets).appending(key)
    node.graft(Node(.integer(value.use)), at: place.appending(SyncRecords.use))
    node.graft(
      value.heard.map { Node(.integer(Int64(clamping: $0))) } ?? .empty,
      at: place.appending(SyncRecords.heard))
    for (shown, isShown) in keys {
      node.graft(
        isShown ? Node(.bool(true)) : .empty,
        at: place.appending(SyncRecords.keys).appending(shown))
    }
  }

  private mutating func set(_ key: Key, _ value: Node) {
    node.graft(value, at: Path.root.appending(key))
  }

  private mutating func set(_ parent: Key, _ key: Key, _ value: Node) {
    node.graft(value, at: Path.root.appending(parent).appending(key))
  }

  // MARK: Saving

  /// Writes what has changed. It waits for room in the log, and not for the disk.
  ///
  /// - Parameters:
  ///   - cache: what the server has said.
  ///   - refused: called if the disk refuses it later, on another thread.
  /// - Returns: why it was refused at once. It is in the next save.
  mutating func save(
    _ cache: inout SyncCache, refused: @escaping @Sendable (EngineError) -> Void
  ) -> EngineError? {
    for (target, change) in cache.takeChanges() { note(target, change, cache) }
    let change = Self.change(engine.head.root, to: cache.data, at: .root)
    let systemChange = Self.change(
      engine.systemNode(at: SyncedDirectory.root), to: node, at: SyncedDirectory.root)
    if change == nil, systemChange == nil { return nil }
    let write = EncodedWrite(
      change.map { EncodedWrite($0) }, system: systemChange.map { EncodedWrite($0) })
    if let refusal = submit(write, refused) { return refusal }
    isRefusalReported = false
    unboundedByteCount += write.logByteCount
    // They share their pages with the engine's, so that the next difference is found quickly; unless the engine has taken
    // the write back already.
    let (data, system) = (engine.head.root, engine.systemNode(at: SyncedDirectory.root))
    if data == cache.data { cache.data = data }
    if system == node { node = system }
    return nil
  }

  /// Writes what has changed of the pending writes alone, whatever the rest is. What the disk refuses later is in the next
  /// save.
  ///
  /// - Returns: why it was refused at once.
  mutating func savePending() -> EngineError? {
    let place = SyncedDirectory.root.appending(SyncRecords.pending)
    let change = Self.change(
      engine.systemNode(at: place), to: node.child(SyncRecords.pending), at: place)
    guard let change else { return nil }
    if let refusal = submit(EncodedWrite(nil, system: EncodedWrite(change)), { _ in }) {
      return refusal
    }
    let there = engine.systemNode(at: place)
    if there == node.child(SyncRecords.pending) { set(SyncRecords.pending, there) }
    return nil
  }

  /// - Returns: why the write was refused at once.
  private func submit(
    _ write: EncodedWrite, _ refused: @escaping @Sendable (EngineError) -> Void
  ) -> EngineError? {
    let saving = Saving(refused)
    engine.submit(write) { result in
      if case .failure(let error) = result { saving.end(error) }
    }
    return saving.begin()
  }

  /// The write that makes one node of another; nil if they do not differ.
  private static func change(_ old: Node, to new: Node, at path: Path) -> Write? {
    if old.isIdentical(to: new) { return nil }
    if let (write, _) = Write.changing(old, to: new, at: path) {
      if case .update(_, let entries) = write, entries.isEmpty { return nil }
      return write
    }
    return new.isEmpty ? old.isEmpty ? nil : .remove(path) : .set(path, new)
  }
}

/// One save on its way.
private final class Saving: Sendable {
  private let state = Mutex<State>(.submitting)
  private let refused: @Sendable (EngineError) -> Void

  private enum State {
    case submitting
    case refused(EngineError)
    case submitted
  }

  init(_ refused: @escaping @Sendable (EngineError) -> Void) { self.refused = refused }

  /// The engine has refused the write.
  func end(_ error: EngineError) {
    let isLate = state.withLock { state in
      if case .submitted = state { return true }
      state = .refused(error)
      return false
    }
    if isLate { refused(error) }
  }

  /// The engine has the write.
  ///
  /// - Returns: why it was refused already.
  func begin() -> EngineError? {
    state.withLock { state in
      if case .refused(let error) = state { return error }
      state = .submitted
      return nil
    }
  }
}
