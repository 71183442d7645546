import Dendro
import DendroEngine
import DendroProtocol
import DendroTree
import Synchronization

/// What a client keeps in a directory: the data that its server has said, which are the tree, and in the second root what is
/// about the client.
///
/// | path in the second root | value |
/// | --- | --- |
/// | `sync/server` | a string: the address of the server |
/// | `sync/user` | a string: the user who has signed in last (`SyncUser`) |
/// | `sync/pending/NUMBER` | a write without an answer: children `write` (`Node(keeping:)`), `user`, a string, and `time`, its milliseconds since 1970 |
/// | `sync/targets/NUMBER` | a tracked target: children `path` and `query`, strings, `use`, a number, and `keys`, a child for each that the query shows |
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

  /// A write of an earlier run.
  struct Pending {
    let number: Int
    let draft: Draft
    let user: SyncUser
    let time: Int64
  }

  init(_ engine: Engine) {
    self.engine = engine
    node = engine.systemNode(at: SyncedDirectory.root)
  }

  // MARK: Loading

  /// What the server has said.
  mutating func loadCache() -> SyncCache {
    var targets: [QueryTarget: SyncCache.Target] = [:]
    for (key, item) in node.child(Self.targets).children {
      lastTargetKey = max(lastTargetKey, Int(key.string) ?? 0)
      guard let target = Self.target(item), targetKeys[target] == nil else { continue }
      targetKeys[target] = key
      var keys: Set<Key> = []
      item.child(Self.keys).forEachChild { key, _ in keys.insert(key) }
      targets[target] = SyncCache.Target(use: item.child(Self.use).scalar?.integer ?? 0, keys: keys)
    }
    return SyncCache(engine.head.root, targets)
  }

  private static func target(_ item: Node) -> QueryTarget? {
    guard let text = item.child(path).scalar?.string, let path = try? Path(parsing: text) else {
      return nil
    }
    guard let query = item.child(query).scalar?.string else { return QueryTarget(path) }
    guard let members = JSONMembers(Array(query.utf8)[...]),
      let parameters = try? WireQuery.parameters(members)
    else { return nil }
    return QueryTarget(path, parameters)
  }

  /// The writes without an answer, in their order.
  func loadPending() -> [Pending] {
    node.child(Self.pending).children.compactMap { key, item in
      guard let number = Int(key.string), let write = item.child(Self.write).keptWrite else {
        return nil
      }
      return Pending(
        number: number, draft: write.withView { Draft(decoding: $0) },
        user: item.child(Self.user).scalar?.string.flatMap { SyncUser(text: $0) } ?? .nobody,
        time: item.child(Self.time).scalar?.integer ?? 0)
    }
  }

  /// The user who has signed in last; nil if nobody has.
  var lastUser: SyncUser? {
    get { node.child(Self.user).scalar?.string.flatMap { SyncUser(text: $0) } }
    set { set(Self.user, newValue.map { Node(.string($0.text)) } ?? .empty) }
  }

  // MARK: Changing

  mutating func keep(_ draft: Draft, number: Int, by user: SyncUser, time: Int64) {
    var item = Node.empty
    item.graft(Node(keeping: EncodedWrite(draft)), at: Path.root.appending(Self.write))
    item.graft(Node(.string(user.text)), at: Path.root.appending(Self.user))
    item.graft(Node(.integer(time)), at: Path.root.appending(Self.time))
    set(Self.pending, Self.key(number), item)
  }

  mutating func remove(write number: Int) { set(Self.pending, Self.key(number), .empty) }

  mutating func setUser(_ user: SyncUser, ofWrite number: Int) {
    let place = Path.root.appending(Self.pending).appending(Self.key(number))
    if node.node(at: place).isEmpty { return }
    node.graft(Node(.string(user.text)), at: place.appending(Self.user))
  }

  private mutating func note(_ target: QueryTarget, _ change: SyncCache.Change, _ cache: SyncCache)
  {
    guard let item = cache[target] else {
      if let key = targetKeys.removeValue(forKey: target) { set(Self.targets, key, .empty) }
      return
    }
    let key: Key
    if let known = targetKeys[target] {
      key = known
    } else {
      lastTargetKey += 1
      key = Self.key(lastTargetKey)
      targetKeys[target] = key
    }
    guard case .parts(let keys) = change, !node.child(Self.targets).child(key).isEmpty else {
      var node = Node.empty
      node.graft(Node(.string("\(target.path)")), at: Path.root.appending(Self.path))
      if !target.parameters.showsAll {
        let query = WireQuery.text(target.parameters)
        node.graft(Node(.string(query)), at: Path.root.appending(Self.query))
      }
      node.graft(Node(.integer(item.use)), at: Path.root.appending(Self.use))
      let keys = Path.root.appending(Self.keys)
      for shown in item.keys { node.graft(Node(.bool(true)), at: keys.appending(shown)) }
      return set(Self.targets, key, node)
    }
    let place = Path.root.appending(Self.targets).appending(key)
    node.graft(Node(.integer(item.use)), at: place.appending(Self.use))
    for (shown, isShown) in keys {
      node.graft(
        isShown ? Node(.bool(true)) : .empty, at: place.appending(Self.keys).appending(shown))
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
    let data = Self.change(engine.head.root, to: cache.data, at: .root)
    let system = Self.change(
      engine.systemNode(at: SyncedDirectory.root), to: node, at: SyncedDirectory.root)
    if data == nil, system == nil { return nil }
    let write = EncodedWrite(
      data.map { EncodedWrite($0) }, system: system.map { EncodedWrite($0) })
    let saving = Saving(refused)
    engine.submit(write) { result in
      if case .failure(let error) = result { saving.end(error) }
    }
    if let refusal = saving.begin() { return refusal }
    isRefusalReported = false
    unboundedByteCount += write.logByteCount
    // They share their pages with the engine's, so that the next difference is found quickly.
    cache.data = engine.head.root
    node = engine.systemNode(at: SyncedDirectory.root)
    return nil
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

  private static let pending = key("pending")
  private static let write = key("write")
  private static let user = key("user")
  private static let time = key("time")
  private static let targets = key("targets")
  private static let path = key("path")
  private static let query = key("query")
  private static let use = key("use")
  private static let keys = key("keys")

  /// Keys of numbers are in the order of the numbers.
  private static func key(_ number: Int) -> Key { key(String(number)) }

  private static func key(_ text: String) -> Key {
    guard let key = try? Key(text) else { preconditionFailure("\(text) is a key") }
    return key
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

extension Scalar {
  fileprivate var string: String? { if case .string(let text) = self { text } else { nil } }
  fileprivate var integer: Int64? { if case .integer(let number) = self { number } else { nil } }
}
