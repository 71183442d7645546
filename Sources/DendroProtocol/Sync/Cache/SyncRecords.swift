package import DendroTree

/// How a directory keeps what is about a client: the children of `sync` in the second root.
///
/// | path below `sync` | value |
/// | --- | --- |
/// | `server` | a string: the address of the server |
/// | `user` | a string: the user who has signed in last (`SyncUser`) |
/// | `pending/NUMBER` | a write without an answer (``KeptWrite``): children `write` (`Node(keeping:)`), `user`, a string, and `time`, its milliseconds since 1970 |
/// | `targets/NUMBER` | a tracked target: children `path` and `query`, strings, `use`, a number, and `keys`, a child for each that the query shows |
package enum SyncRecords {
  package static let user = key("user")
  package static let pending = key("pending")
  package static let targets = key("targets")
  package static let write = key("write")
  package static let time = key("time")
  package static let path = key("path")
  package static let query = key("query")
  package static let use = key("use")
  package static let keys = key("keys")

  /// Keys of numbers are in the order of the numbers.
  package static func key(_ number: Int) -> Key { key(String(number)) }

  private static func key(_ text: String) -> Key {
    guard let key = try? Key(text) else { preconditionFailure("\(text) is a key") }
    return key
  }

  /// The writes without an answer, in their order.
  package static func writes(in sync: Node) -> [KeptWrite] {
    sync.child(pending).children.compactMap { KeptWrite($0.key, $0.node) }
  }

  /// The user who has signed in last; nil if nobody has.
  package static func lastUser(in sync: Node) -> SyncUser? {
    sync.child(user).text.flatMap { SyncUser(text: $0) }
  }

  /// A tracked target; nil for what is none.
  package static func target(_ item: Node) -> (target: QueryTarget, value: SyncCache.Target)? {
    guard let text = item.child(path).text, let path = try? Path(parsing: text) else { return nil }
    var parameters = QueryParameters()
    if let query = item.child(query).text {
      guard let members = JSONMembers(Array(query.utf8)[...]),
        let read = try? WireQuery.parameters(members)
      else { return nil }
      parameters = read
    }
    var keys: Set<Key> = []
    item.child(self.keys).forEachChild { key, _ in keys.insert(key) }
    let value = SyncCache.Target(use: item.child(use).integer ?? 0, keys: keys)
    return (QueryTarget(path, parameters), value)
  }

  /// A tracked target as it is kept.
  package static func node(_ target: QueryTarget, _ value: SyncCache.Target) -> Node {
    var node = Node.empty
    node.put(Node(.string("\(target.path)")), at: path)
    if !target.parameters.showsAll {
      node.put(Node(.string(WireQuery.text(target.parameters))), at: query)
    }
    node.put(Node(.integer(value.use)), at: use)
    let keys = Path.root.appending(keys)
    for key in value.keys { node.graft(Node(.bool(true)), at: keys.appending(key)) }
    return node
  }
}

/// A write without an answer, as a directory keeps it.
package struct KeptWrite: Sendable {
  package let number: Int
  package let draft: Draft
  /// Who has made it.
  package let user: SyncUser
  /// When it was made, in milliseconds since 1970.
  package let time: Int64

  package init(number: Int, _ draft: Draft, by user: SyncUser, time: Int64) {
    self.number = number
    self.draft = draft
    self.user = user
    self.time = time
  }

  /// - Returns: nil for what is no write.
  init?(_ key: Key, _ node: Node) {
    guard let number = Int(key.string), let write = node.child(SyncRecords.write).keptWrite else {
      return nil
    }
    self.number = number
    draft = write.withView { Draft(decoding: $0) }
    user = node.child(SyncRecords.user).text.flatMap { SyncUser(text: $0) } ?? .nobody
    time = node.child(SyncRecords.time).integer ?? 0
  }

  package var node: Node {
    var node = Node.empty
    node.put(Node(keeping: EncodedWrite(draft)), at: SyncRecords.write)
    node.put(Node(.string(user.text)), at: SyncRecords.user)
    node.put(Node(.integer(time)), at: SyncRecords.time)
    return node
  }
}

extension Node {
  fileprivate var text: String? { if case .string(let text)? = scalar { text } else { nil } }
  fileprivate var integer: Int64? {
    if case .integer(let number)? = scalar { number } else { nil }
  }
}
