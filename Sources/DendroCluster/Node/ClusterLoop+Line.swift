import DendroEngine
import DendroStorage

// What a server that follows passes on to the leader, and what comes over the line to that.

extension ClusterLoop {
  /// Passes on to the leader what this server's program has written.
  func forward(_ session: ClusterSession, _ head: SharedHead) throws(ClusterError) {
    let forwarding = node.forwarding
    forwarding.setOpen(true)
    forwarding.giveUp()
    guard forwarding.hasWaiting else { return }
    // The log up to this head was taken.
    let epoch = head.epoch.number
    forwarding.begin(epoch: epoch, token: head.epoch.token)
    if head.leader == .none || head.leader == settings.serverID { return forwarding.expire() }
    let answers = try session.answers(to: forwarding.client, epoch: epoch)
    forwarding.note(answers, epoch: epoch)
    try session.forget(answers, to: forwarding.client, epoch: epoch)
    forwarding.endAnswered(upTo: position.lsn)
    let line = node.leaderLine.flatMap { $0.isOpen(head.epoch) ? $0 : nil }
    // The log is looked at between them.
    for _ in 0..<4 {
      // What may be in the table is left there again first.
      if line != nil, !forwarding.hasAttempt { break }
      guard let row = forwarding.nextRow(by: .table) else { break }
      try session.request(row, of: forwarding.client, epoch: epoch)
      forwarding.sent(row, epoch: epoch, by: .table)
    }
    if let line { send(over: line, head.epoch) }
  }

  func send(over line: LeaderLine, _ epoch: Epoch) {
    let forwarding = node.forwarding
    while let row = forwarding.nextRow(by: .line) {
      guard line.send(row, epoch) else { return forwarding.notSent() }
      forwarding.sent(row, epoch: epoch.number, by: .line)
    }
  }

  // MARK: The leader's line

  /// Takes what the leader has sent, and sends what it is to make.
  ///
  /// - Returns: how long to sleep; nil if PostgreSQL is to be looked at.
  mutating func followLine() throws(ClusterError) -> Duration? {
    guard let line = node.leaderLine else { return nil }
    let forwarding = node.forwarding
    let news = line.takeNews()
    if news.wasLost { forwarding.lineLost() }
    let isWhole = try take(news.batches) && !news.hasGap
    if let epoch = news.epoch { forwarding.note(news.answers, epoch: epoch.number) }
    forwarding.endAnswered(upTo: position.lsn)
    guard isWhole, node.currentStatus.role == .following, candidate == nil, let lastLook,
      line.isOpen(lastLook.epoch), !forwarding.hasRows(by: .table)
    else { return nil }
    let rest = settings.lineLookInterval - (.now - lastLook.time)
    guard rest > .zero else { return nil }
    if forwarding.hasWaiting {
      forwarding.giveUp()
      // The log up to this epoch was taken when PostgreSQL was looked at.
      forwarding.begin(epoch: lastLook.epoch.number, token: lastLook.epoch.token)
      send(over: line, lastLook.epoch)
    }
    return rest
  }

  /// Takes batches that the leader has sent, as far as they follow.
  ///
  /// - Returns: false if PostgreSQL is to be asked for what is missing.
  mutating func take(_ batches: [LoggedBatch]) throws(ClusterError) -> Bool {
    var isWhole = true
    for batch in batches where isWhole && batch.end.lsn > position.lsn {
      guard batch.firstLSN <= position.lsn.next else { return false }
      do throws(ClusterError) {
        try take(batch)
      } catch {
        // Whether the copy is another one PostgreSQL says.
        if case .engine = error { throw error }
        isWhole = false
      }
    }
    let lsn = position.lsn
    if !batches.isEmpty {
      node.update { status in
        status.takenLSN = lsn
        status.sharedLSN = max(status.sharedLSN, lsn)
      }
    }
    return isWhole
  }

  /// Opens a line to the leader, if it takes one.
  func openLine(_ session: ClusterSession, _ head: SharedHead) throws(ClusterError) {
    guard let line = node.leaderLine, line.wantsCall(head.epoch), head.leader != .none,
      head.leader != settings.serverID
    else { return }
    if let failure = line.takeFailure() {
      node.record(
        LogEvent(
          .warning, "there is no line to the leader: PostgreSQL is the way", ["error": failure]))
    }
    line.call(try session.leaderLine(epoch: head.epoch.number), head.epoch)
  }
}
