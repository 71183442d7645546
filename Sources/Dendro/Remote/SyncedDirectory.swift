package import DendroEngine
package import DendroTree
import Synchronization

/// A directory with a server's data: the data that the server has said are the tree, and what is about the client stands in
/// the second root, under `sync`. The name of the server is what makes it one.
package enum SyncedDirectory {
  package static let root = SyncedClient.root

  /// The address of the server whose data an engine has; nil if they are its own.
  package static func server(of engine: Engine) -> String? {
    server(in: engine.systemNode(at: root))
  }

  private static func server(in node: Node) -> String? {
    if case .string(let address)? = node.child(SyncedClient.server).scalar { address } else { nil }
  }

  /// Makes the directory one of this server's, unless it is already.
  static func claim(_ engine: Engine, for address: RemoteAddress) throws(DatabaseError) {
    let wanted = "\(address)"
    if let server = server(of: engine) {
      if server == wanted { return }
      throw DatabaseError(
        .invalidArgument, "OtherServer",
        "the directory \(engine.path ?? "") keeps in step with \(server), and not with \(wanted)")
    }
    guard engine.withHead({ root, _ in root.isEmpty }), engine.systemNode(at: .root).isEmpty else {
      throw DatabaseError(
        .invalidArgument, "OwnData",
        "the directory \(engine.path ?? "") has data of its own, which are no server's")
    }
    let write = Write.set(root.appending(SyncedClient.server), Node(.string(wanted)))
    let refusal = Mutex<EngineError?>(nil)
    engine.submit(EncodedWrite(nil, system: EncodedWrite(write))) { result in
      if case .failure(let error) = result { refusal.withLock { $0 = error } }
    }
    do throws(EngineError) {
      try engine.synchronize()
      if let refusal = refusal.withLock({ $0 }) { throw refusal }
    } catch {
      throw DatabaseError(error)
    }
  }

  /// - Throws: if the engine has a server's data, which only the server can change.
  static func refuse(_ engine: Engine) throws(DatabaseError) {
    guard !engine.isReadOnly, let server = server(of: engine) else { return }
    throw DatabaseError(
      .unavailable, "SyncedDirectory",
      """
      the directory \(engine.path ?? "") keeps in step with \(server): open it with Database.open(at:syncingWith:), \
      or for reading
      """)
  }
}
