import DendroEngine
import DendroStorage
import Synchronization

/// What a server's thread does: looks at the shared log again and again, takes what is new, and takes over when the
/// leader is gone.
struct ClusterLoop {
  private let node: ClusterNode
  private let settings: ClusterSettings
  private var session: ClusterSession?
  private var pauses: Pauses
  /// Where this server's copy of the log ends. While it leads, the leadership has that.
  private var position: CopyPosition
  private var isLeading = false
  private var isPaused = false
  private var lastBeat: ContinuousClock.Instant?
  private var lastSuccess = ContinuousClock.now
  /// Since when PostgreSQL lacks what this server has; nil if it does not.
  private var setBackSince: ContinuousClock.Instant?
  /// What other servers pass on, while this one leads.
  private var requests: Requests?
  /// The token of an epoch that may have begun: the answer was missing.
  private var candidate: [UInt8]?
  /// What was seen of the leader, and since when that stands still.
  private var watched: Watched?
  /// The leader from which this server takes over.
  private var previous: Peers.Row?
  private var lookPause: Duration
  /// When PostgreSQL was looked at last, and the epoch then; nil if that has failed.
  private var lastLook: (time: ContinuousClock.Instant, epoch: Epoch)?
  /// Whether PostgreSQL was looked at in this turn, or only the line.
  private var hasLooked = false
  /// What operators ask for, as of the last beat.
  private var orders = ClusterOrders()
  private var succession = Succession()
  /// Of the rows that were taken.
  private var takenByteCount: Int64 = 0

  private struct Watched {
    var epoch: Epoch
    var leader: ServerID
    var counter: Int64?
    var since: ContinuousClock.Instant
  }

  init(_ node: ClusterNode, at position: CopyPosition) {
    self.node = node
    settings = node.settings
    self.position = position
    pauses = settings.pauses
    lookPause = settings.lookIntervals.0
  }

  mutating func run() {
    while !node.leadership.isClosed {
      if node.leadership.isClosing {
        waitForClosing()
        break
      }
      let seen = node.signalCount
      hasLooked = false
      do throws(ClusterError) {
        let session = try usableSession()
        let pause = isLeading ? try lead(session) : try follow(session)
        node.considerCheckpoint(
          logged: takenByteCount + node.leadership.figures.appendByteCount,
          at: isLeading ? node.leadership.position : position.known)
        if isLeading || hasLooked { succeeded() }
        node.sleep(pause, behind: seen)
      } catch {
        if isFatal(error) { return stop(error) }
        failed(error)
      }
    }
    // The engine may have been closed before this thread has seen that it is being closed.
    node.forwarding.close("the database is closed")
    leave(node.leadership.epoch)
  }

  // MARK: Connections

  private mutating func usableSession() throws(ClusterError) -> ClusterSession {
    if let session, session.isUsable { return session }
    session = nil
    let new = try ClusterSession(
      settings, node.interruption, newClusterID: node.environment.randomness.bytes(16),
      patience: pauses.timeout)
    try node.copy.check(new)
    if let address = node.lines?.address { try new.offer(address) }
    session = new
    // The head is read before anything else.
    lastBeat = nil
    return new
  }

  private mutating func succeeded() {
    pauses.succeeded()
    lastSuccess = .now
    setBackSince = nil
    if node.currentStatus.trouble != nil {
      node.record(LogEvent(.info, "PostgreSQL answers again"))
      node.update { $0.trouble = nil }
    }
    if isPaused, isLeading, node.leadership.trouble == nil {
      let resumes =
        try? node.withEngine { engine in engine.resumeLeading { node.leadership.epoch != nil } }
      // While a batch is being appended it is asked again.
      isPaused = resumes != true
    }
  }

  private mutating func failed(_ error: ClusterError) {
    if node.currentStatus.trouble == nil, !node.leadership.isClosing {
      node.record(LogEvent(.warning, "PostgreSQL does not answer", ["error": "\(error)"]))
    }
    node.update { $0.trouble = "\(error)" }
    // What a leader's counter does meanwhile is not seen.
    watched = nil
    lastLook = nil
    pauseLeadingIfDue("\(error)", since: lastSuccess)
    node.forwarding.expire()
    node.forwarding.giveUp()
    // A line that works may have been refused something.
    if session?.isUsable == false { session = nil }
    pauses.wait(node.interruption)
  }

  private mutating func pauseLeadingIfDue(_ reason: String, since: ContinuousClock.Instant) {
    guard isLeading, !isPaused, .now - since >= settings.pauseDelay else { return }
    isPaused = true
    try? node.withEngine { $0.pauseLeading("PostgreSQL does not answer: \(reason)") }
  }

  // MARK: Leading

  /// - Returns: how long to sleep before the next look.
  private mutating func lead(_ session: ClusterSession) throws(ClusterError) -> Duration {
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
      if let position, isSucceeded(by: servers, at: position.lsn, epoch) {
        try handOver(session, epoch)
        return .zero
      }
      if let position { node.update { $0.sharedLSN = position.lsn } }
      let head = try session.head()
      if head.epoch != epoch {
        try endLeading("another server leads")
      } else if let position, head.position.lsn < position.lsn {
        try appendAgain(session, epoch, from: head.position, to: position)
      }
    }
    try requests?.step(session) { isBeatDue }
    return requests?.pause(settings.beatInterval / 4) ?? settings.beatInterval / 4
  }

  /// Appends again what PostgreSQL has lost, since it was set back while this server led.
  private func appendAgain(
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

  private mutating func endLeading(_ reason: String) throws(ClusterError) {
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

  private var isBeatDue: Bool {
    lastBeat.map { .now - $0 >= settings.beatInterval } ?? true
  }

  private mutating func beat(
    _ session: ClusterSession, _ lsn: LogSequenceNumber?
  ) throws(ClusterError) {
    try session.beat(lsn: lsn)
    lastBeat = .now
    orders = try session.orders()
    if let lsn { try node.verify(orders.verification, session, at: lsn) }
  }

  // MARK: What operators ask for

  /// Whether another server is to lead, and is there and in step.
  private mutating func isSucceeded(
    by servers: [ServerID: (row: Peers.Row, lsn: LogSequenceNumber?, address: String)],
    at end: LogSequenceNumber, _ epoch: Epoch
  ) -> Bool {
    let servers = servers.map { id, server in
      Succession.Server(
        id: id, counter: server.row.counter, lsn: server.lsn, address: server.address)
    }
    succession.note(servers, end: end, interval: settings.beatInterval)
    return succession.successor(
      orders, epoch: epoch.number, of: settings.serverID, at: settings.ownAddress, among: servers)
      != nil
  }

  /// Leaves the leading to another server, once what was admitted here is appended.
  private mutating func handOver(_ session: ClusterSession, _ epoch: Epoch) throws(ClusterError) {
    let reason = "another server is to lead"
    // What is refused from here on waits for the next leader.
    node.forwarding.setOpen(true)
    try node.withEngine { $0.pauseLeading(reason) }
    let deadline = ContinuousClock.now + settings.beatInterval / 2
    while try node.withEngine({ $0.admittedLSN }) != node.leadership.position?.lsn, .now < deadline
    {
      node.sleep(.milliseconds(1), behind: node.signalCount)
    }
    try endLeading(reason)
    try session.resign(epoch)
  }

  /// Whether this server begins to lead, since no other does.
  private mutating func mayLead(
    _ session: ClusterSession, _ head: SharedHead
  ) throws(ClusterError) -> Bool {
    orders = try session.orders()
    // Nobody waits for a move whose command has been ended since.
    if head.leader != .none { orders.move = nil }
    return succession.mayLead(
      orders, behind: head.epoch, of: settings.serverID, at: settings.ownAddress,
      delay: settings.takeoverDelay)
  }

  // MARK: Following

  /// - Returns: how long to sleep before the next look.
  private mutating func follow(_ session: ClusterSession) throws(ClusterError) -> Duration {
    if let failure = try node.withEngine({ $0.copyFailure }) { throw .engine(failure) }
    if let pause = try followLine() { return pause }
    hasLooked = true
    var head = try session.head()
    if head.position.lsn < position.lsn {
      // An old primary has less as well. It commits nothing without its standby.
      try beat(session, position.lsn)
      head = try session.head()
    }
    let isNew = head.position.lsn > position.lsn
    try take(session, upTo: head.position)
    lastLook = (.now, head.epoch)
    if isBeatDue { try beat(session, position.lsn) }
    let leader = head.leader == .none ? nil : head.leader
    let isOpening = node.currentStatus.role == .opening
    if isOpening || leader != node.currentStatus.leader {
      let place = head.leaderAddress.isEmpty ? "" : ": " + head.leaderAddress
      try node.withEngine {
        $0.pauseLeading(leader == nil ? "no server leads" : "another server leads" + place)
      }
    }
    node.update { status in
      status.epoch = head.epoch.number
      status.leader = leader
      status.leaderAddress = head.leaderAddress
      status.sharedLSN = head.position.lsn
    }
    try forward(session, head)
    try openLine(session, head)
    if let candidate, head.epoch.token == candidate {
      try beginLeading(session, head.epoch, end: head.position)
      return .zero
    }
    let isGone = isLeaderGone(head)
    if !isGone { succession.leaderIsThere() }
    if isGone, try !mayLead(session, head) {
      // The others would see that this server is there, and wait for it.
      if head.leader == settings.serverID { try session.resign(head.epoch) }
    } else if isGone {
      let token = node.environment.randomness.bytes(Epoch.tokenByteCount)
      candidate = token
      previous = head.leader == .none ? nil : head.leaderRow
      if let (epoch, end) = try session.takeOver(from: head.epoch, token: token) {
        try beginLeading(session, epoch, end: end)
        return .zero
      }
      candidate = nil
      return .zero
    }
    node.update { status in if status.role == .opening { status.role = .following } }
    lookPause =
      isNew || node.forwarding.hasWaiting
      ? settings.lookIntervals.0 : min(lookPause * 2, settings.lookIntervals.1)
    return lookPause
  }

  /// Passes on to the leader what this server's program has written.
  private func forward(_ session: ClusterSession, _ head: SharedHead) throws(ClusterError) {
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

  private func send(over line: LeaderLine, _ epoch: Epoch) {
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
  private mutating func followLine() throws(ClusterError) -> Duration? {
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
  private mutating func take(_ batches: [LoggedBatch]) throws(ClusterError) -> Bool {
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
  private func openLine(_ session: ClusterSession, _ head: SharedHead) throws(ClusterError) {
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

  /// Whether the leader has stood still for so long that this server takes over.
  private mutating func isLeaderGone(_ head: SharedHead) -> Bool {
    // The directory is locked: the process that led under this server's name has ended.
    if head.leader == .none || head.leader == settings.serverID { return true }
    let now = ContinuousClock.now
    guard let watched, watched.epoch == head.epoch, watched.leader == head.leader,
      watched.counter == head.leaderCounter
    else {
      watched = Watched(
        epoch: head.epoch, leader: head.leader, counter: head.leaderCounter, since: now)
      return false
    }
    return now - watched.since >= settings.takeoverDelay
  }

  private mutating func beginLeading(
    _ session: ClusterSession, _ epoch: Epoch, end: LogPosition
  ) throws(ClusterError) {
    try take(session, upTo: end)
    candidate = nil
    node.leadership.begin(epoch, from: end)
    // All of the log before this epoch was taken: what waits and is not in it was not made.
    let requests = try node.withEngine {
      node.requests(epoch, $0, gone: previous)
    }
    var own: [ForwardedWrite] = []
    let begins = try node.withEngine { engine in
      engine.beginLeading {
        own = node.forwarding.takeAll()
        return own.compactMap(\.asWrite)
      }
    }
    guard begins else {
      node.leadership.end()
      throw .engine(try node.withEngine { $0.copyFailure } ?? .closed)
    }
    isLeading = true
    isPaused = false
    self.requests = requests
    node.leaderLine?.close()
    node.setRequests(requests)
    requests.makeOwn(own.filter { $0.asWrite == nil }) { [forwarding = node.forwarding] in
      forwarding.takeMore()
    }
    node.record(
      LogEvent(
        .info, "this server leads", ["epoch": String(epoch.number), "lsn": "\(end.lsn)"]))
    node.update { status in
      status.role = .leading
      status.epoch = epoch.number
      status.leader = settings.serverID
      status.leaderAddress = settings.ownAddress
      status.sharedLSN = end.lsn
      status.takeoverCount += 1
    }
    try session.forgetRequests(before: epoch.number)
  }

  /// Takes what the log has up to a position, which a look has found to be its end.
  private mutating func take(
    _ session: ClusterSession, upTo end: LogPosition
  ) throws(ClusterError) {
    guard end.lsn >= position.lsn else {
      throw .setBack(
        "PostgreSQL was set back: its log ends at write \(end.lsn), and this server has writes up to \(position.lsn)"
      )
    }
    while position.lsn < end.lsn {
      let batches = try session.batches(behind: position.lsn)
      guard let first = batches.first, first.firstLSN <= position.lsn.next else {
        throw try missingLog(session)
      }
      // Those behind may be of an epoch of which the beginning was not seen.
      guard first.end.lsn <= end.lsn else { throw otherLog(end.lsn) }
      for batch in batches where batch.end.lsn <= end.lsn { try take(batch) }
      let lsn = position.lsn
      node.update { $0.takenLSN = lsn }
      // So that the log is not trimmed in front of a server that has much to read.
      if isBeatDue { try beat(session, position.lsn) }
    }
    // What was appended since the look is no other log.
    if position.lsn == end.lsn {
      if let chain = position.chain, chain != end.chain { throw otherLog(end.lsn) }
      position.chain = end.chain
    }
  }

  /// Why the log does not go on behind this server's copy.
  private func missingLog(_ session: ClusterSession) throws(ClusterError) -> ClusterError {
    let newest = try session.checkpoints().first?.lsn ?? .zero
    if newest <= position.lsn {
      return .setBack("the log in PostgreSQL has no write \(position.lsn.next)")
    }
    return .trimmed(
      """
      open the server again: its copy ends at write \(position.lsn), which is older than the log that PostgreSQL keeps
      """)
  }

  private mutating func take(_ batch: LoggedBatch) throws(ClusterError) {
    let known = position
    try BatchBody.decode(batch.body, firstLSN: batch.firstLSN) {
      (records) throws(ClusterError) in
      guard records.last?.lastLSN == batch.end.lsn else {
        throw .damagedBatch(batch.firstLSN, "it does not end with write \(batch.end.lsn)")
      }
      // The disk may have lost the rest of a batch.
      let new = known.chain == nil ? records.filter { $0.lastLSN > known.lsn } : records
      guard new.first?.firstLSN == known.lsn.next else {
        throw .setBack("the log in PostgreSQL has no write \(known.lsn.next)")
      }
      if let chain = known.chain, chain.appending(records) != batch.end.chain {
        throw otherLog(batch.end.lsn)
      }
      try node.withEngine { (engine) throws(ClusterError) in
        do throws(EngineError) {
          try engine.take(new)
        } catch {
          throw .engine(error)
        }
      }
    }
    position = CopyPosition(batch.end)
    node.keepRoots(at: batch.end.lsn)
    takenByteCount += Int64(batch.body.count) + ClusterSession.rowByteCount
    node.copy.note(batch.end)
  }

  private func otherLog(_ lsn: LogSequenceNumber) -> ClusterError {
    .setBack(
      "PostgreSQL was set back: at write \(lsn) its log is another one than that which this server has a copy of"
    )
  }

  // MARK: The end

  private mutating func isFatal(_ error: ClusterError) -> Bool {
    switch error {
    case .postgres: return false
    case .engine(.closed): return false
    case .setBack where !isLeading:
      // The leader may have what is missing, and append it again.
      let since = setBackSince ?? .now
      setBackSince = since
      return .now - since >= settings.setBackDelay
    case .engine, .damagedBatch, .newerSchema, .otherCluster, .setBack, .trimmed,
      .damagedCheckpoint, .files:
      return true
    }
  }

  private mutating func stop(_ error: ClusterError) {
    let reason = "\(error.naming(writesOf: comparison))"
    let epoch = node.leadership.epoch
    node.publisher.stop()
    node.leadership.end()
    try? node.withEngine { engine in try? engine.endLeading(reason) }
    node.setRequests(nil)
    requests?.end()
    node.record(
      LogEvent(.error, "this server takes no part any more", ["error": reason]))
    node.leaderLine?.close()
    node.forwarding.close(reason)
    leave(epoch)
    node.update { $0.role = .stopped(reason) }
  }

  /// Of this server's copy with PostgreSQL, if that answers.
  private var comparison: CopyComparison? {
    guard let session, session.isUsable else { return nil }
    let last = isLeading ? node.leadership.position?.lsn : position.lsn
    return CopyComparison(
      directory: node.directory, copy: node.copy, last: last ?? .zero, session: session)
  }

  /// Waits until the engine has written what it had.
  private func waitForClosing() {
    node.hasSeenClosing.store(true, ordering: .releasing)
    _ = node.interruption.clear()
    node.forwarding.close("the database is closed")
    let deadline = ContinuousClock.now + settings.closingDelay
    while true {
      let seen = node.signalCount
      if node.leadership.isClosed { return }
      node.sleep(.milliseconds(50), behind: seen)
      // What waits for an answer gives up.
      if .now >= deadline { node.leadership.hurry() }
    }
  }

  /// Leaves the leading to others at once.
  ///
  /// - Parameter epoch: that of this server; nil if it does not lead.
  private mutating func leave(_ epoch: Epoch?) {
    defer {
      // Those who follow look at once.
      node.setRequests(nil)
      node.leaderLine?.close()
    }
    guard let session, session.isUsable else { return }
    if let epoch { try? session.resign(epoch) }
    try? session.leave()
    if node.lines?.address != nil { try? session.withdrawLine() }
    self.session = nil
  }
}

extension ClusterNode {
  func withEngineOrClosed(_ body: (Engine) throws(EngineError) -> Void) throws(EngineError) {
    let result: Result<Void, EngineError>
    do throws(ClusterError) {
      result = try withEngine { engine in
        Result { () throws(EngineError) in try body(engine) }
      }
    } catch {
      throw .closed
    }
    try result.get()
  }
}
