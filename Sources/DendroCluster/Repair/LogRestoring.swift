import DendroEngine
import DendroStorage
import DendroTree
import Synchronization

/// Appends the end of a directory's log to PostgreSQL's log, in an epoch of its own. For one thread.
final class LogRestoring {
  private let settings: ClusterSettings
  private let copy: CopyFile
  /// Of the server.
  private let directory: String
  private let interruption: Interruption
  private let progress: @Sendable (_ lsn: UInt64, _ trouble: String?) -> Void
  private var session: ClusterSession

  init(
    _ settings: ClusterSettings, _ copy: CopyFile, directory: String, _ session: ClusterSession,
    _ interruption: Interruption,
    progress: @escaping @Sendable (_ lsn: UInt64, _ trouble: String?) -> Void
  ) {
    self.settings = settings
    self.copy = copy
    self.directory = directory
    self.session = session
    self.interruption = interruption
    self.progress = progress
  }

  /// - Parameters:
  ///   - start: where PostgreSQL's log ends.
  ///   - last: the last write that the directory has.
  func run(from start: LogPosition, to last: LogSequenceNumber) throws(RepairFailure) {
    let epoch = try takeOver(start)
    do throws(RepairFailure) {
      try append(epoch, from: start, to: last)
    } catch {
      resign(epoch)
      throw error
    }
    resign(epoch)
  }

  /// If this fails, the next server waits for some seconds before it takes over.
  private func resign(_ epoch: Epoch) {
    try? usableSession().resign(epoch)
    try? session.leave()
  }

  private func usableSession() throws(ClusterError) -> ClusterSession {
    if session.isUsable { return session }
    session = try ClusterSession(
      settings, interruption,
      newClusterID: Environment.system.randomness.bytes(ClusterID.byteCount))
    try copy.check(session)
    return session
  }

  // MARK: The epoch

  /// Begins an epoch once no server leads.
  private func takeOver(_ start: LogPosition) throws(RepairFailure) -> Epoch {
    var watched: (epoch: Epoch, counter: Int64?, since: ContinuousClock.Instant)?
    let token = Environment.system.randomness.bytes(Epoch.tokenByteCount)
    while true {
      let head = try asking { () throws(ClusterError) in try usableSession().head() }
      guard head.position == start else {
        throw .refused("PostgreSQL's log has gone on meanwhile, to write \(head.position.lsn)")
      }
      // The answer to an attempt may have been lost.
      if head.epoch.token == token { return head.epoch }
      if head.leader == .none || head.leader == settings.serverID {
        if let epoch = try begin(token, behind: head.epoch, at: start) { return epoch }
        continue
      }
      if let seen = watched, seen.epoch == head.epoch {
        if seen.counter != head.leaderCounter { throw .refused(Self.isLed(head)) }
        if .now - seen.since >= settings.takeoverDelay {
          if let epoch = try begin(token, behind: head.epoch, at: start) { return epoch }
          continue
        }
      } else if watched != nil {
        throw .refused(Self.isLed(head))
      } else {
        watched = (head.epoch, head.leaderCounter, .now)
      }
      pause(.milliseconds(50))
    }
  }

  private func begin(
    _ token: [UInt8], behind epoch: Epoch, at start: LogPosition
  ) throws(RepairFailure) -> Epoch? {
    let begun = try asking { () throws(ClusterError) in
      try usableSession().takeOver(from: epoch, token: token)
    }
    guard let begun else { return nil }
    guard begun.end == start else {
      resign(begun.epoch)
      throw .refused("PostgreSQL's log has gone on meanwhile, to write \(begun.end.lsn)")
    }
    return begun.epoch
  }

  private static func isLed(_ head: SharedHead) -> String {
    let place = head.leaderAddress.isEmpty ? "" : ", \(head.leaderAddress)"
    return """
      a server leads\(place): while it does, its next write would take the place of those in question. Stop all servers of this \
      namespace first
      """
  }

  // MARK: The writes

  private func append(
    _ epoch: Epoch, from start: LogPosition, to last: LogSequenceNumber
  ) throws(RepairFailure) {
    let leadership = try asking { () throws(ClusterError) in try newLeadership() }
    defer { leadership.engineClosed() }
    leadership.begin(epoch, from: start)
    var refusal: RepairFailure?
    var lastBeat = ContinuousClock.now
    let reader = CopyReader(path: CopyFile.dataDirectory(in: directory))
    try asking { () throws(ClusterError) in
      try reader.records(behind: start.lsn, upTo: last) { record in
        guard refusal == nil else { return }
        if .now - lastBeat >= settings.beatInterval {
          lastBeat = .now
          // So that no server takes over meanwhile. If this fails, so does the append, or that waits.
          _ = try? usableSession().beat(lsn: nil)
          progress(record.firstLSN.rawValue - 1, nil)
        }
        do throws(SharedLogFailure) {
          // One record at a time, whatever the batch was: a copy that ends behind any of them can go on from there.
          try leadership.append([record])
        } catch {
          refusal = Self.refusal(error, at: record.firstLSN, to: last)
        }
      }
    }
    if let refusal { throw refusal }
  }

  private func newLeadership() throws(ClusterError) -> Leadership {
    let watcher = Watcher(progress)
    do throws(PostgresError) {
      let leadership = try Leadership(settings, copy, Environment.system.randomness) {
        watcher.report()
      }
      watcher.leadership.withLock { $0 = WeakLeadership(value: leadership) }
      return leadership
    } catch {
      throw .postgres(error)
    }
  }

  private struct WeakLeadership {
    weak var value: Leadership?
  }

  /// Reports what keeps a batch waiting.
  private final class Watcher: Sendable {
    let leadership = Mutex(WeakLeadership())
    private let progress: @Sendable (_ lsn: UInt64, _ trouble: String?) -> Void

    init(_ progress: @escaping @Sendable (_ lsn: UInt64, _ trouble: String?) -> Void) {
      self.progress = progress
    }

    func report() {
      guard let leadership = leadership.withLock({ $0.value }),
        let trouble = leadership.trouble
      else { return }
      progress(leadership.position?.lsn.rawValue ?? 0, trouble.reason)
    }
  }

  private static func refusal(
    _ failure: SharedLogFailure, at lsn: LogSequenceNumber, to last: LogSequenceNumber
  ) -> RepairFailure {
    let reason =
      switch failure {
      case .refused(let reason), .undecided(let reason): reason
      }
    return .refused("\(reason): writes \(lsn) to \(last) are not in PostgreSQL")
  }

  // MARK: Waiting

  private func pause(_ duration: Duration) {
    let condition = Condition()
    _ = condition.wait(behind: condition.signalCount, until: .now + duration)
  }

  /// Calls `body`, which asks PostgreSQL.
  private func asking<R>(
    _ body: () throws(ClusterError) -> R
  ) throws(RepairFailure) -> R {
    do throws(ClusterError) {
      return try body()
    } catch {
      throw RepairFailure(error)
    }
  }
}
