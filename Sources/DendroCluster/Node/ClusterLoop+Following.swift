import DendroEngine
import DendroStorage

// A server that follows, until it takes over.

extension ClusterLoop {
  /// - Returns: how long to sleep before the next look.
  mutating func follow(_ session: ClusterSession) throws(ClusterError) -> Duration {
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
      _ = try node.withEngine {
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

  /// Whether the leader has stood still for so long that this server takes over.
  mutating func isLeaderGone(_ head: SharedHead) -> Bool {
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

  mutating func beginLeading(
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
    // What was seen of the others when this server led before is over.
    succession = Succession()
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
  mutating func take(
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
  func missingLog(_ session: ClusterSession) throws(ClusterError) -> ClusterError {
    let newest = try session.checkpoints().first?.lsn ?? .zero
    if newest <= position.lsn {
      return .setBack("the log in PostgreSQL has no write \(position.lsn.next)")
    }
    return .trimmed(
      """
      open the server again: its copy ends at write \(position.lsn), which is older than the log that PostgreSQL keeps
      """)
  }

  mutating func take(_ batch: LoggedBatch) throws(ClusterError) {
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

  func otherLog(_ lsn: LogSequenceNumber) -> ClusterError {
    .setBack(
      "PostgreSQL was set back: at write \(lsn) its log is another one than that which this server has a copy of"
    )
  }
}
