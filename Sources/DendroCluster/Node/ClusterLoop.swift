import DendroEngine
import DendroStorage
import Synchronization

/// What a server's thread does: looks at the shared log again and again, takes what is new, and takes over when the
/// leader is gone.
struct ClusterLoop {
  let node: ClusterNode
  let settings: ClusterSettings
  var session: ClusterSession?
  var pauses: Pauses
  /// Where this server's copy of the log ends. While it leads, the leadership has that.
  var position: CopyPosition
  var isLeading = false
  var isPaused = false
  var lastBeat: ContinuousClock.Instant?
  var twin = Twin()
  var lastSuccess = ContinuousClock.now
  /// Since when PostgreSQL lacks what this server has; nil if it does not.
  var setBackSince: ContinuousClock.Instant?
  /// What other servers pass on, while this one leads.
  var requests: Requests?
  /// The token of an epoch that may have begun: the answer was missing.
  var candidate: [UInt8]?
  /// What was seen of the leader, and since when that stands still.
  var watched: Watched?
  /// The leader from which this server takes over.
  var previous: Peers.Row?
  var lookPause: Duration
  /// When PostgreSQL was looked at last, and the epoch then; nil if that has failed.
  var lastLook: (time: ContinuousClock.Instant, epoch: Epoch)?
  /// Whether PostgreSQL was looked at in this turn, or only the line.
  var hasLooked = false
  /// What operators ask for, as of the last beat.
  var orders = ClusterOrders()
  var succession = Succession()
  /// Batches that were appended before the last look at the other servers, and how long that took.
  var seenAppends = (count: UInt64(0), time: Duration.zero)
  /// Of the rows that were taken.
  var takenByteCount: Int64 = 0

  struct Watched {
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

  mutating func usableSession() throws(ClusterError) -> ClusterSession {
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

  mutating func succeeded() {
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
      if !isPaused { node.record(LogEvent(.info, "writes are taken again")) }
    }
  }

  mutating func failed(_ error: ClusterError) {
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

  mutating func pauseLeadingIfDue(_ reason: String, since: ContinuousClock.Instant) {
    guard isLeading, !isPaused, .now - since >= settings.pauseDelay else { return }
    let isRefused = try? node.withEngine {
      $0.pauseLeading("PostgreSQL does not answer: \(reason)")
    }
    isPaused = isRefused == true
    guard isPaused, !node.leadership.isClosing else { return }
    node.record(
      LogEvent(.warning, "writes are refused, since PostgreSQL takes none", ["error": reason]))
  }

  // MARK: The end

  mutating func isFatal(_ error: ClusterError) -> Bool {
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

  mutating func stop(_ error: ClusterError) {
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
  var comparison: CopyComparison? {
    guard let session, session.isUsable else { return nil }
    let last = isLeading ? node.leadership.position?.lsn : position.lsn
    return CopyComparison(
      directory: node.directory, copy: node.copy, last: last ?? .zero, session: session)
  }

  /// Waits until the engine has written what it had.
  func waitForClosing() {
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
  mutating func leave(_ epoch: Epoch?) {
    defer {
      // Those who follow look at once.
      node.setRequests(nil)
      node.leaderLine?.close()
    }
    guard let session, session.isUsable else { return }
    if let epoch {
      try? session.resign(epoch)
    } else if !twin.isThere {
      try? session.resignAsSuccessor()
    }
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
