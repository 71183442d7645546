import DendroStorage

/// Whether a server that leads is to leave that to another one, and whether one that follows holds back though no server
/// leads: as operators ask for it, and so that namespaces are spread over the servers.
struct Succession {
  /// A server of the namespace, as it has said of itself.
  struct Server {
    var id: ServerID
    var counter: Int64
    var lsn: LogSequenceNumber?
    var address: String
  }

  private var seen: [ServerID: (counter: Int64, moved: ContinuousClock.Instant?)] = [:]
  /// Where the log ended at the last looks.
  private var ends: [LogSequenceNumber] = []
  /// The other server that is to lead, and since when it is the same one.
  private var preference: (server: ServerID, since: ContinuousClock.Instant)?
  private var holdsBack: (epoch: Epoch, since: ContinuousClock.Instant)?

  /// What the others have said about a second ago is compared with the end of the log before that.
  private static let endCount = 3

  // MARK: Leading

  /// Looks at the others, once a second.
  ///
  /// - Parameters:
  ///   - end: of the log.
  ///   - interval: between two looks.
  mutating func note(
    _ servers: [Server], end: LogSequenceNumber, interval: Duration,
    now: ContinuousClock.Instant = .now
  ) {
    ends.append(end)
    if ends.count > Self.endCount { ends.removeFirst() }
    var new: [ServerID: (counter: Int64, moved: ContinuousClock.Instant?)] = [:]
    for server in servers {
      let known = seen[server.id]
      let hasMoved = known.map { $0.counter != server.counter } ?? false
      new[server.id] = (server.counter, hasMoved ? now : known?.moved)
    }
    seen = new.mapValues { counter, moved in
      (counter, moved.flatMap { now - $0 < interval * 3 ? $0 : nil })
    }
  }

  /// The server that is to lead instead of this one: it is there, and in step.
  ///
  /// - Parameters:
  ///   - own: this server.
  ///   - address: of this server.
  /// - Returns: nil if this one goes on to lead.
  func successor(
    _ orders: ClusterOrders, epoch: Int64, of own: ServerID, at address: String,
    among servers: [Server]
  ) -> ServerID? {
    let others = servers.filter { $0.id != own && isThere($0) && isInStep($0) }
    if let move = orders.move, move.epoch == epoch, move.server != own,
      others.contains(where: { $0.id == move.server })
    {
      return move.server
    }
    guard orders.drains(own, at: address) else { return nil }
    return first(orders, of: others)?.id
  }

  /// The server that is to lead instead of this one so that namespaces are spread, once it has been the same one for a time
  /// and is in step. It is returned once, and again after as long a time.
  ///
  /// Each server has drawn an id for each namespace. Of the servers that take clients, that with the highest id is to lead,
  /// unless an operator has named one: so one that comes or goes changes that only for namespaces of its own (rendezvous
  /// hashing).
  ///
  /// - Parameters:
  ///   - own: this server.
  ///   - delay: how long it must have been the same one, and up to twice as long.
  /// - Returns: nil if this one goes on to lead.
  mutating func preferred(
    _ orders: ClusterOrders, of own: ServerID, among servers: [Server], after delay: Duration,
    now: ContinuousClock.Instant = .now
  ) -> Server? {
    let candidates = servers.filter { $0.id == own || isThere($0) }
    guard let server = first(orders, of: candidates), server.id != own else {
      preference = nil
      return nil
    }
    guard let preference, preference.server == server.id else {
      preference = (server.id, now)
      return nil
    }
    let share = Double(own.bytes.last ?? 0) / 256
    guard now - preference.since >= delay + delay * share, isInStep(server) else { return nil }
    self.preference = nil
    return server
  }

  /// Whether its counter moves.
  private func isThere(_ server: Server) -> Bool { seen[server.id]?.moved != nil }

  /// Whether it has what the log had some looks ago.
  private func isInStep(_ server: Server) -> Bool { (server.lsn ?? .zero) >= (ends.first ?? .zero) }

  /// The one that is to lead: that which an operator has named, or else, of those that take clients if there are some, that
  /// with the highest id.
  private func first(_ orders: ClusterOrders, of servers: [Server]) -> Server? {
    let servers = servers.filter { !orders.drains($0.id, at: $0.address) }
    if let place = servers.first(where: orders.isPlace) { return place }
    let serving = servers.filter { !$0.address.isEmpty }
    return (serving.isEmpty ? servers : serving).max {
      $0.id.bytes.lexicographicallyPrecedes($1.id.bytes)
    }
  }

  // MARK: Following

  /// Notes that a server leads.
  mutating func leaderIsThere() { holdsBack = nil }

  /// Whether this server begins to lead now, since no other does. One that is not to lead leaves it to others for a time: if
  /// none has taken it then, none is there.
  mutating func mayLead(
    _ orders: ClusterOrders, behind epoch: Epoch, of own: ServerID, at address: String,
    delay: Duration, now: ContinuousClock.Instant = .now
  ) -> Bool {
    let isForAnother = orders.move.map { $0.epoch == epoch.number && $0.server != own } ?? false
    guard isForAnother || orders.drains(own, at: address) else { return true }
    guard let holdsBack, holdsBack.epoch == epoch else {
      holdsBack = (epoch, now)
      return false
    }
    return now - holdsBack.since >= delay
  }
}
