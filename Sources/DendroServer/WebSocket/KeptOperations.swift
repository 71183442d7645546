import Dendro
package import DendroTree

/// What a client has registered to be written when it leaves, as the second root of a database has it.
package struct KeptOperations: Sendable {
  /// The client's session.
  package let session: String
  /// All of its operations, as one update of the root. A time that is not known yet is a string that says so; of a sum below
  /// an entry, there is what would be added.
  package let write: Write

  /// What the clients have registered that had not left when a database was written last.
  ///
  /// - Parameter system: the second root.
  package static func all(in system: Node) -> [Self] {
    system.node(at: DisconnectJournal.root).children.compactMap { session, entries in
      DisconnectJournal.operations(entries).draft.map { Self(session.string, $0) }
    }
  }

  private init(_ session: String, _ draft: Draft) {
    self.session = session
    guard case .update(let base, var entries) = draft.write else {
      write = draft.write
      return
    }
    for deferred in draft.deferred {
      for index in entries.indices where entries[index].path.isPrefix(of: deferred.path) {
        Self.show(deferred, in: &entries[index])
      }
    }
    write = .update(base, entries)
  }

  private static func show(_ deferred: Draft.Deferred, in entry: inout Write.Entry) {
    if case .increment(let number) = deferred.value, deferred.path == entry.path,
      !deferred.isPriority
    {
      return entry.action = .increment(number)
    }
    let shown =
      switch deferred.value {
      case .timestamp: Scalar.string("the server's time")
      case .increment(let number): number.scalar
      }
    switch entry.action {
    case .set(var node):
      let place = Path(keys: deferred.path.keys.dropFirst(entry.path.count))
      let old = node.node(at: place)
      let new =
        deferred.isPriority ? old.settingPriority(shown) : Node(shown).settingPriority(old.priority)
      node.graft(new, at: place)
      entry.action = .set(node)
    case .setPriority: entry.action = .setPriority(shown)
    case .remove, .increment: break
    }
  }
}
