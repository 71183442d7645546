package import DendroTree

/// How a directory keeps what is about a client: the children of `sync` in the second root.
///
/// | path below `sync` | value |
/// | --- | --- |
/// | `server` | a string: the address of the server |
/// | `user` | a string: the user who has signed in last (`SyncUser`) |
/// | `client` | a string: by which a server tells this client from others |
/// | `known` | what a server that makes numbered writes once has said last (``KnownServer``): `branch`, a string, `lsn` and `time`, numbers |
/// | `pending/NUMBER` | a write without an answer (``OutgoingWrite``): children `write` and, if that adds, `estimate`, what it shows (`Node(keeping:)`), `user` and `incarnation`, strings, `time`, its milliseconds since 1970, `sent`, those of a time before it was sent, or not there (writes of one user that add nothing are sent in their order: those before one that was sent need not have it), and `held`, true or not there |
/// | `targets/NUMBER` | a tracked target: children `path` and `query`, strings, `use`, a number, `keys`, a child for each that the query shows, and `heard`, the number of a write of the server after which what is kept was right, or not there |
package enum SyncRecords {
  package static let user = Key(fixed: "user")
  package static let client = Key(fixed: "client")
  private static let known = Key(fixed: "known")
  private static let branch = Key(fixed: "branch")
  private static let lsn = Key(fixed: "lsn")
  private static let incarnation = Key(fixed: "incarnation")
  package static let pending = Key(fixed: "pending")
  package static let targets = Key(fixed: "targets")
  package static let sent = Key(fixed: "sent")
  package static let held = Key(fixed: "held")
  private static let write = Key(fixed: "write")
  private static let estimate = Key(fixed: "estimate")
  private static let time = Key(fixed: "time")
  private static let path = Key(fixed: "path")
  private static let query = Key(fixed: "query")
  package static let use = Key(fixed: "use")
  package static let keys = Key(fixed: "keys")
  package static let heard = Key(fixed: "heard")

  /// The number that a key has; nil for what is none.
  package static func number(_ key: Key) -> Int? {
    guard let number = Int(key.string), (1...Int(Int32.max)).contains(number),
      key == Key(number)
    else { return nil }
    return number
  }

  /// The writes without an answer, in their order.
  package static func writes(in sync: Node) -> [(number: Int, write: OutgoingWrite)] {
    var writes = sync.child(pending).children.compactMap { key, node -> (Int, OutgoingWrite)? in
      guard let number = number(key), let write = outgoing(node) else { return nil }
      return (number, write)
    }
    var sentTimes: [SyncUser: Int64] = [:]
    for index in writes.indices.reversed() where !writes[index].1.adds {
      let user = writes[index].1.user
      if let time = writes[index].1.sentTime ?? sentTimes[user] {
        sentTimes[user] = time
        writes[index].1.sentTime = time
      }
    }
    return writes
  }

  private static func outgoing(_ node: Node) -> OutgoingWrite? {
    guard let write = node.child(write).keptWrite else { return nil }
    return OutgoingWrite(
      user: node.child(user).text.flatMap { SyncUser(text: $0) } ?? .anonymous,
      draft: write.withView { Draft(decoding: $0) },
      estimate: node.child(estimate).keptWrite?.withView { Draft(decoding: $0) }.write,
      time: node.child(time).integer ?? 0,
      incarnation: node.child(incarnation).text,
      // What is no number is a mark of an earlier version.
      sentTime: node.has(sent) ? node.child(sent).integer ?? 0 : nil, isHeld: node.has(held))
  }

  /// A write as it is kept.
  package static func node(_ outgoing: OutgoingWrite) -> Node {
    var node = Node.empty
    node.put(Node(keeping: EncodedWrite(outgoing.draft)), at: write)
    if let shown = outgoing.estimate { node.put(Node(keeping: EncodedWrite(shown)), at: estimate) }
    node.put(Node(.string(outgoing.user.text)), at: user)
    node.put(Node(.integer(outgoing.time)), at: time)
    if let text = outgoing.incarnation { node.put(Node(.string(text)), at: incarnation) }
    if let time = outgoing.sentTime { node.put(Node(.integer(time)), at: sent) }
    if outgoing.isHeld { node.put(Node(.bool(true)), at: held) }
    return node
  }

  /// What a server has said last; nil if none has.
  package static func knownServer(in sync: Node) -> KnownServer? {
    let node = sync.child(known)
    guard let branch = node.child(branch).text, let lsn = node.child(lsn).integer,
      let time = node.child(time).integer
    else { return nil }
    return KnownServer(branch: branch, lsn: UInt64(max(0, lsn)), time: time)
  }

  package static func put(_ server: KnownServer, into sync: inout Node) {
    var node = Node.empty
    node.put(Node(.string(server.branch)), at: branch)
    node.put(Node(.integer(Int64(clamping: server.lsn))), at: lsn)
    node.put(Node(.integer(server.time)), at: time)
    sync.put(node, at: known)
  }

  /// By which a server tells the client from others; nil if that was not drawn.
  package static func clientID(in sync: Node) -> String? { sync.child(client).text }

  /// The user who signed in last; nil if none is known.
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
    let value = SyncCache.Target(
      use: min(max(0, item.child(use).integer ?? 0), 1 << 60), keys: keys,
      heard: item.child(heard).integer.flatMap { UInt64(exactly: $0) })
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
    if let lsn = value.heard { node.put(Node(.integer(Int64(clamping: lsn))), at: heard) }
    let keys = Path.root.appending(keys)
    for key in value.keys { node.graft(Node(.bool(true)), at: keys.appending(key)) }
    return node
  }
}

extension Node {
  fileprivate var text: String? { if case .string(let text)? = scalar { text } else { nil } }
  fileprivate var integer: Int64? {
    if case .integer(let number)? = scalar { number } else { nil }
  }
}
