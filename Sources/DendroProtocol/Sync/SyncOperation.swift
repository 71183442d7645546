import DendroTree

/// What happens to the data of a client: a write of its own, word from the server, an answer.
struct SyncOperation {
  enum Kind {
    /// The client puts a node to the place, or nodes to places below it.
    case write(Node)
    case writes([PendingWrites.Entry])
    /// The server says what is at the place, or at places below it.
    case news(Node)
    case newsOfEntries([PendingWrites.Entry])
    /// The server has taken a write of these places, relative to that of the operation; nil for the place itself. `isTold`: whether
    /// queries show nothing of it but what the server has told of them.
    case accepted([DataPlace]?, isTold: Bool)
    /// The server has not taken a write at the place or below. What is shown there begins anew with what it has said.
    case refused
    /// A listen at the place is answered: this is there; nil for what the server has said last. `isWindow`: whether that is what
    /// a query shows, so that nothing else is known any more.
    case listened(Node?, isWindow: Bool)
  }

  var kind: Kind
  /// As seen from where the operation is applied.
  var place: DataPlace

  init(_ kind: Kind, at place: DataPlace) {
    self.kind = kind
    self.place = place
  }

  /// The operation as seen from a location below; nil if it does not concern that.
  func below(_ path: Path) -> SyncOperation? {
    guard let key = path.first else { return self }
    return below(key)?.below(path.dropFirst(1))
  }

  /// The operation as seen from a child; nil if it does not concern the child.
  func below(_ key: Key) -> SyncOperation? {
    if let first = place.path.first {
      return first == key ? SyncOperation(kind, at: place.droppingFirst()) : nil
    }
    if place.isPriority { return nil }
    switch kind {
    case .write(let node): return SyncOperation(.write(node.child(key)), at: .root)
    case .news(let node): return SyncOperation(.news(node.child(key)), at: .root)
    case .writes(let entries): return Self.below(key, entries, { .write($0) }, { .writes($0) })
    case .newsOfEntries(let entries):
      return Self.below(key, entries, { .news($0) }, { .newsOfEntries($0) })
    case .accepted(let places, let isTold):
      let own = Self.below(key, places)
      return own?.isEmpty == true
        ? nil : SyncOperation(.accepted(own, isTold: isTold), at: .root)
    case .refused: return SyncOperation(.refused, at: .root)
    case .listened(let node, let isWindow):
      return SyncOperation(.listened(node?.child(key), isWindow: isWindow), at: .root)
    }
  }

  private static func below(
    _ key: Key, _ entries: [PendingWrites.Entry], _ whole: (Node) -> Kind,
    _ parts: ([PendingWrites.Entry]) -> Kind
  ) -> SyncOperation? {
    let own = entries.filter { $0.place.path.first == key }.map {
      PendingWrites.Entry($0.place.droppingFirst(), $0.node)
    }
    if let entry = own.first(where: \.place.isRoot) {
      return SyncOperation(whole(entry.node), at: .root)
    }
    return own.isEmpty ? nil : SyncOperation(parts(own), at: .root)
  }

  private static func below(_ key: Key, _ places: [DataPlace]?) -> [DataPlace]? {
    guard let places else { return nil }
    let own = places.filter { $0.path.first == key }.map { $0.droppingFirst() }
    return own.contains(where: \.isRoot) ? nil : own
  }
}
