package import DendroTree

/// Where a client keeps what is about its server, in the second root of its directory.
package enum SyncedClient {
  package static let root = Path.root.appending(Key(fixed: "sync"))
  package static let server = Key(fixed: "server")
  /// What a server tells this client from others by.
  package static let client = Key(fixed: "client")
  /// The user who has signed in last.
  package static let user = Key(fixed: "user")
  /// The writes without an answer, each under its number.
  package static let pending = Key(fixed: "pending")
  /// Of such a write: whether the server may have it.
  package static let sent = Key(fixed: "sent")

  /// What a repair leaves that withdraws the second root: which server's the data are, and the writes that it has not answered.
  /// They may have been answered, and count as sent; which locations are known whole is forgotten.
  static func keep(from withdrawn: Node, in left: inout Node) {
    let sync = withdrawn.node(at: root)
    for name in [server, client, user, pending] {
      let child = sync.child(name)
      if !child.isEmpty { left.graft(child, at: root.appending(name)) }
    }
    for (number, _) in sync.child(pending).children {
      let place = root.appending(pending).appending(number).appending(sent)
      left.graft(Node(.bool(true)), at: place)
    }
  }
}
