package import DendroTree

/// Where a client keeps what is about its server, in the second root of its directory.
package enum SyncedClient {
  package static let root = Path.root.appending(key("sync"))
  package static let server = key("server")
  private static let pending = key("pending")
  private static let sent = key("sent")

  /// What a repair leaves that withdraws the second root: which server's the data are, and the writes that it has not answered.
  /// They may have been answered, and count as sent; which locations are known whole is forgotten.
  static func keep(from withdrawn: Node, in left: inout Node) {
    let sync = withdrawn.node(at: root)
    for name in ["server", "client", "user", "pending"] {
      let child = sync.child(key(name))
      if !child.isEmpty { left.graft(child, at: root.appending(key(name))) }
    }
    for (number, _) in sync.child(pending).children {
      let place = root.appending(pending).appending(number).appending(sent)
      left.graft(Node(.bool(true)), at: place)
    }
  }

  private static func key(_ text: String) -> Key {
    guard let key = try? Key(text) else { preconditionFailure("\(text) is a key") }
    return key
  }
}
