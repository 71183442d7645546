import DendroEngine
import DendroStorage

// A server that leads.

extension ClusterLoop {
  /// - Returns: how long to sleep before the next look.
  mutating func lead(_ session: ClusterSession) throws(ClusterError) -> Duration {
    guard let epoch = node.leadership.epoch else {
      try endLeading("another server leads")
      return .zero
    }
    if let failure = try node.withEngine({ $0.copyFailure }) { throw .engine(failure) }
    if let trouble = node.leadership.trouble {
      pauseLeadingIfDue(trouble.reason, since: trouble.since)
    }
    if isBeatDue {
      let position = node.leadership.position
      try beat(session, position?.lsn)
      let servers = try session.servers()
      node.note(servers.values.map(\.row))
      requests?.setFollowerCount(node.liveCount - 1)
      if let position { node.update { $0.sharedLSN = position.lsn } }
      let head = try session.head()
      if head.epoch != epoch {
        try endLeading("another server leads")
        return .zero
      }
      if let position, head.position.lsn < position.lsn {
        try appendAgain(session, epoch, from: head.position, to: position)
      } else if let position,
        let successor = try successor(session, among: servers, at: position.lsn, epoch)
      {
        try handOver(session, epoch, to: successor)
        return .zero
      }
    }
    try requests?.step(session) { isBeatDue }
    return requests?.pause(settings.beatInterval / 4) ?? settings.beatInterval / 4
  }

  /// Appends again what PostgreSQL has lost, since it was set back while this server led.
  func appendAgain(
    _ session: ClusterSession, _ epoch: Epoch, from start: LogPosition, to end: LogPosition
  ) throws(ClusterError) {
    let (path, lastLSN) = try node.withEngine { ($0.path, $0.statistics().durableLSN) }
    // The last batch is just being copied: the next look finds it.
    guard let path, lastLSN >= end.lsn else { return }
    let copy = CopyReader(path: path)
    var chain = start.chain
    do throws(ClusterError) {
      try copy.records(behind: start.lsn, upTo: end.lsn) { chain = chain.appending($0) }
    } catch {
      throw .setBack(
        "PostgreSQL was set back to write \(start.lsn), and this server has not all writes since: \(error)"
      )
    }
    guard chain == end.chain else { throw otherLog(end.lsn) }
    var position = start
    try copy.records(behind: start.lsn, upTo: end.lsn) { (record) throws(ClusterError) in
      let after = LogPosition(lsn: record.lastLSN, chain: position.chain.appending(record))
      let batch = SharedBatch(
        epoch: epoch, before: position, after: after, body: BatchBody.encode([record]))
      let isMoved = try session.append(batch, timeout: settings.statementTimeout)
      let stands = try isMoved ? true : session.stands(batch)
      guard stands == true else {
        throw .postgres(.malformed("the log has moved while it was appended to"))
      }
      position = after
    }
    node.record(
      LogEvent(
        .warning, "PostgreSQL was set back: what it had lost is appended again",
        ["from": "\(start.lsn.next)", "to": "\(end.lsn)"]))
  }

  mutating func endLeading(_ reason: String) throws(ClusterError) {
    node.leadership.end()
    // PostgreSQL answers, and says that the log is another server's.
    node.leadership.hurry()
    isLeading = false
    isPaused = false
    watched = nil
    do throws(EngineError) {
      try node.withEngineOrClosed { (engine) throws(EngineError) in try engine.endLeading(reason) }
    } catch {
      throw .engine(error)
    }
    // The engine refuses what they have.
    node.setRequests(nil)
    requests?.end()
    requests = nil
    // What was being appended has come to its end.
    if let last = node.leadership.position { position = CopyPosition(last) }
    node.record(LogEvent(.warning, "this server leads no more", ["reason": reason]))
    node.update { $0.role = .following }
  }

  var isBeatDue: Bool {
    lastBeat.map { .now - $0 >= settings.beatInterval } ?? true
  }

  mutating func beat(
    _ session: ClusterSession, _ lsn: LogSequenceNumber?
  ) throws(ClusterError) {
    let other = try session.beat(lsn: lsn)
    try twin.note(other, own: settings.client, isFirst: lastBeat == nil)
    lastBeat = .now
    orders = try session.orders()
    if let lsn { try node.verify(orders.verification, session, at: lsn) }
  }

  // MARK: Leaving it to another server

  /// The server that is to lead instead of this one, and is there and in step: an operator asks for that, or this server leads
  /// more namespaces than the other one.
  mutating func successor(
    _ session: ClusterSession,
    among servers: [ServerID: (row: Peers.Row, lsn: LogSequenceNumber?, address: String)],
    at end: LogSequenceNumber, _ epoch: Epoch
  ) throws(ClusterError) -> ServerID? {
    let servers = servers.map { id, server in
      Succession.Server(
        id: id, counter: server.row.counter, lsn: server.lsn, address: server.address)
    }
    succession.note(servers, end: end, interval: settings.beatInterval)
    let (id, address) = (settings.serverID, settings.ownAddress)
    if let ordered = succession.successor(
      orders, epoch: epoch.number, of: id, at: address, among: servers)
    {
      return ordered
    }
    guard let delay = settings.spreadDelay, appendsQuickly(),
      let preferred = succession.preferred(orders, of: id, among: servers, after: delay)
    else { return nil }
    if orders.isPlace(preferred) { return preferred.id }
    let counts = try session.leaderCounts()
    return counts[address, default: 0] > counts[preferred.address, default: 0] + 1
      ? preferred.id : nil
  }

  /// Whether PostgreSQL has taken the batches since the last look so fast that all that was admitted is appended before
  /// another server leads.
  private mutating func appendsQuickly() -> Bool {
    let figures = node.leadership.figures
    let count = figures.appendCount - seenAppends.count
    let time = figures.appendTime - seenAppends.time
    seenAppends = (figures.appendCount, figures.appendTime)
    return node.leadership.trouble == nil
      && (count == 0 || time < settings.beatInterval / 10 * count)
  }

  /// Leaves the leading to another server, once what was admitted here is appended.
  mutating func handOver(
    _ session: ClusterSession, _ epoch: Epoch, to successor: ServerID
  ) throws(ClusterError) {
    let reason = "another server is to lead"
    // What is refused from here on waits for the next leader.
    node.forwarding.setOpen(true)
    _ = try node.withEngine { $0.pauseLeading(reason) }
    let deadline = ContinuousClock.now + settings.beatInterval / 2
    while try node.withEngine({ $0.admittedLSN }) != node.leadership.position?.lsn, .now < deadline
    {
      node.sleep(.milliseconds(1), behind: node.signalCount)
    }
    try endLeading(reason)
    try session.resign(epoch, to: successor)
  }

  /// Whether this server begins to lead, since no other does.
  mutating func mayLead(
    _ session: ClusterSession, _ head: SharedHead
  ) throws(ClusterError) -> Bool {
    orders = try session.orders()
    // As long as another server may lead, a move does not count: its command may have been ended.
    if head.leader != .none { orders.move = nil }
    return succession.mayLead(
      orders, behind: head.epoch, of: settings.serverID, at: settings.ownAddress,
      delay: settings.takeoverDelay)
  }
}
