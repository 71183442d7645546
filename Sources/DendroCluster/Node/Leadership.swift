import DendroEngine
import DendroStorage
import Synchronization

/// Appends the batches of a server that leads.
///
/// A batch is appended by one statement that moves the head of the log or does nothing. Without an answer the same
/// statement is sent again, over a new connection, until PostgreSQL has taken it or has refused it because the head is
/// elsewhere; then the row of the log says whose batch stands. No batch is ever guessed to stand or not to stand.
final class Leadership: Sendable {
  private let settings: ClusterSettings
  /// Before the first attempt.
  private let pauses: Pauses
  private let copy: CopyFile
  /// Ends the wait for an answer: of this object alone.
  private let interruption: Interruption
  private let randomness: any Randomness
  private let state = Mutex(State())
  /// Used by the thread that has the turn.
  private let session = Mutex(Session())
  /// Called when leading has ended because PostgreSQL has refused a batch, and when the engine begins to close or is closed.
  private let changed: @Sendable () -> Void

  private struct State {
    /// Nil while this server does not lead.
    var epoch: Epoch?
    /// Where the log ends, as far as this server knows.
    var position: LogPosition?
    /// Since when PostgreSQL does not take a batch, and why.
    var trouble: Trouble?
    /// Until when an answer to a batch is waited for; nil if none is.
    var waitsUntil: ContinuousClock.Instant?
    var isClosing = false
    var isClosed = false
    /// When an outcome that is not known is not waited for any more.
    var closingDeadline: ContinuousClock.Instant?
    var figures = Figures()
  }

  private struct Session: ~Copyable {
    var open: ClusterSession?
  }

  /// What keeps a batch waiting.
  struct Trouble: Sendable {
    let since: ContinuousClock.Instant
    var reason: String
  }

  struct Figures: Sendable {
    var appendCount: UInt64 = 0
    var appendTime = Duration.zero
    /// Of their rows in the log.
    var appendByteCount: Int64 = 0
    /// Batches of which an answer was missing.
    var undecidedCount: UInt64 = 0
  }

  init(
    _ settings: ClusterSettings, _ copy: CopyFile, _ randomness: any Randomness,
    changed: @escaping @Sendable () -> Void
  ) throws(PostgresError) {
    self.settings = settings
    pauses = settings.pauses
    self.copy = copy
    interruption = try Interruption()
    self.randomness = randomness
    self.changed = changed
  }

  var epoch: Epoch? { state.withLock { $0.epoch } }
  /// Nil while this server does not lead: what it appended last may still be asked for.
  var trouble: Trouble? { state.withLock { $0.epoch == nil ? nil : $0.trouble } }
  var figures: Figures { state.withLock { $0.figures } }
  var isClosing: Bool { state.withLock { $0.isClosing } }
  var isClosed: Bool { state.withLock { $0.isClosed } }
  /// Where the log ended when this server appended to it last.
  var position: LogPosition? { state.withLock { $0.position } }

  /// Leads from now on.
  func begin(_ epoch: Epoch, from position: LogPosition) {
    state.withLock {
      $0.epoch = epoch
      $0.position = position
      $0.trouble = nil
    }
  }

  /// Appends nothing from now on. A batch that is being appended comes to its end.
  func end() {
    state.withLock { $0.epoch = nil }
  }

  /// As `SharedLog.append(_:)`.
  ///
  /// - Returns: what PostgreSQL has now; nil without records.
  @discardableResult
  func append(_ records: [SharedRecord]) throws(SharedLogFailure) -> LoggedBatch? {
    guard
      let (epoch, before) = state.withLock({ state in
        state.epoch.flatMap { epoch in state.position.map { (epoch, $0) } }
      })
    else { throw .refused("this server does not lead") }
    guard let first = records.first, let last = records.last else { return nil }
    precondition(first.firstLSN == before.lsn.next, "a batch follows the last one")
    let started = ContinuousClock.now
    let batch = SharedBatch(
      epoch: epoch, before: before,
      after: LogPosition(lsn: last.lastLSN, chain: before.chain.appending(records)),
      body: BatchBody.encode(records))
    try session.withLock { (session) throws(SharedLogFailure) in
      try append(batch, &session)
    }
    copy.note(batch.after)
    let took = ContinuousClock.now - started
    state.withLock { state in
      state.position = batch.after
      state.trouble = nil
      state.figures.appendCount += 1
      state.figures.appendTime += took
      state.figures.appendByteCount += Int64(batch.body.count) + ClusterSession.rowByteCount
    }
    return LoggedBatch(firstLSN: first.firstLSN, end: batch.after, body: batch.body)
  }

  private func append(
    _ batch: SharedBatch, _ session: inout Session
  ) throws(SharedLogFailure) {
    var isUndecided = false
    var pauses = pauses
    pauses.succeeded()
    while true {
      do throws(ClusterError) {
        let open = try usable(&session, pauses.timeout)
        // Whether the statement arrives is not known until it is answered.
        let isMoved: Bool
        state.withLock { $0.waitsUntil = .now + pauses.timeout }
        defer { state.withLock { $0.waitsUntil = nil } }
        do throws(ClusterError) {
          isMoved = try open.append(batch, timeout: pauses.timeout)
        } catch {
          if case .postgres(let error) = error, error.isUndecided, !isUndecided {
            isUndecided = true
            state.withLock { $0.figures.undecidedCount += 1 }
          }
          throw error
        }
        if isMoved { return }
        let stands = try open.stands(batch)
        if stands == true { return }
        let head = try open.head()
        // PostgreSQL was set back, or just was. The node's thread may be able to append again what is missing.
        if head.epoch == batch.epoch, self.epoch != nil {
          throw ClusterError.setBack("the log in PostgreSQL ends at write \(head.position.lsn)")
        }
        state.withLock { $0.epoch = nil }
        changed()
        if stands == nil, isUndecided { throw ClusterError.trimmed(Self.isTrimmed) }
        throw ClusterError.engine(.unavailable("another server leads"))
      } catch {
        if case .engine(let refusal) = error { throw .refused(refusal.description) }
        if case .trimmed(let reason) = error { throw .undecided(reason) }
        if !note(error) {
          let reason = "PostgreSQL does not answer: \(error)"
          throw isUndecided ? .undecided(reason) : .refused(reason)
        }
        if !interruption.clear() { pauses.wait(interruption) }
      }
    }
  }

  private static let isTrimmed =
    "another server leads, and what the log had of this time is trimmed"

  private func usable(
    _ session: inout Session, _ patience: Duration
  ) throws(ClusterError) -> ClusterSession {
    if let open = session.open, open.isUsable { return open }
    session.open = nil
    let open = try ClusterSession(
      settings, interruption, newClusterID: randomness.bytes(ClusterID.byteCount),
      patience: patience)
    try copy.check(open)
    session.open = open
    return open
  }

  /// Notes why a batch waits.
  ///
  /// - Returns: whether it goes on to wait.
  private func note(_ error: ClusterError) -> Bool {
    let isNews = state.withLock { state in
      let isNews = state.trouble == nil
      if isNews { state.trouble = Trouble(since: .now, reason: "\(error)") }
      state.trouble?.reason = "\(error)"
      return isNews
    }
    if isNews { changed() }
    return state.withLock { state in state.closingDeadline.map { $0 > .now } ?? true }
  }

  /// Has a batch that waits for its answer sent again at once, over another connection.
  func hurry() {
    if state.withLock({ $0.waitsUntil != nil }) { interruption.set() }
  }

  func engineCloses() {
    state.withLock { state in
      state.isClosing = true
      state.closingDeadline = .now + settings.closingDelay
    }
    changed()
  }

  func engineClosed() {
    session.withLock { $0.open = nil }
    state.withLock { $0.isClosed = true }
    changed()
  }
}

extension Randomness {
  func bytes(_ count: Int) -> [UInt8] {
    (0..<(count / 8)).flatMap { _ in withUnsafeBytes(of: next()) { Array($0) } }
  }
}
