import DendroStorage

/// A connection to PostgreSQL for one namespace, for one thread at a time.
///
/// It begins with a write of its own. A primary that was restarted shows commits which its standbys may lack; once a
/// synchronous write behind them has returned they have them, and what is read counts.
final class ClusterSession {
  let clusterID: ClusterID
  private let connection: PostgresConnection
  private let settings: ClusterSettings
  private var timeout: Duration
  /// Until when the tables of what operators ask for are not looked for: they are missing, or not for this role.
  var orderPause: ContinuousClock.Instant?

  var namespace: PostgresValue { .text(settings.namespace) }

  /// Names this opening of this server.
  var client: [UInt8] { settings.client }

  /// - Parameters:
  ///   - newClusterID: drawn at random.
  ///   - patience: how long connecting and the first write may take; nil: as long as any statement.
  init(
    _ settings: ClusterSettings, _ interruption: Interruption, newClusterID: [UInt8],
    patience: Duration? = nil
  ) throws(ClusterError) {
    self.settings = settings
    let patience = patience ?? settings.statementTimeout
    timeout = patience
    do throws(PostgresError) {
      connection = try PostgresConnection(
        settings.address, timeout: patience, interruption: interruption, hosts: settings.hosts)
    } catch {
      throw .postgres(error)
    }
    do throws(ClusterError) {
      clusterID = try ClusterSchema.prepare(connection, newID: newClusterID, timeout: timeout)
    } catch {
      if case .postgres(let cause) = error, cause.isSilence { connection.passOverHost() }
      throw error
    }
    try beat(lsn: nil)
    connection.preferHost()
    timeout = settings.statementTimeout
  }

  var isUsable: Bool { connection.isUsable }

  /// What the directories of all servers say of the namespace.
  var databaseID: DatabaseID { clusterID.databaseID(of: settings.namespace) }

  func execute(
    _ sql: String, _ parameters: [PostgresValue]
  ) throws(ClusterError) -> PostgresRows {
    try execute(sql, parameters, timeout: timeout)
  }

  private func execute(
    _ sql: String, _ parameters: [PostgresValue], timeout: Duration
  ) throws(ClusterError) -> PostgresRows {
    do throws(PostgresError) {
      return try connection.execute(sql, parameters, timeout: timeout)
    } catch {
      if error.isSilence { connection.passOverHost() }
      throw .postgres(error)
    }
  }

  /// Makes the tables that are missing.
  ///
  /// - Returns: false if this role may not.
  func makeTables() throws(ClusterError) -> Bool {
    do throws(PostgresError) {
      try connection.executeScript(ClusterSchema.creation, timeout: timeout)
    } catch {
      // If another server makes them at the same time, they are there at the next look.
      guard case .refused(let state, _) = error else { throw .postgres(error) }
      return state != "42501"
    }
    return true
  }

  // MARK: Who is there

  /// Raises the counter of this server.
  ///
  /// - Parameter lsn: the last write that it has; nil: as before.
  /// - Returns: which process has raised it last; nil if none has.
  @discardableResult
  func beat(lsn: LogSequenceNumber?) throws(ClusterError) -> [UInt8]? {
    let rows = try execute(
      """
      WITH before AS (SELECT opening FROM dendro.server WHERE id = $1)
      INSERT INTO dendro.server (id, namespace, counter, lsn, address, opening)
      VALUES ($1, $2, 1, $3, $4, $5)
      ON CONFLICT (id) DO UPDATE SET counter = dendro.server.counter + 1, address = $4,
        opening = $5, lsn = CASE WHEN $3 < 0 THEN dendro.server.lsn ELSE $3 END
      RETURNING (SELECT opening FROM before)
      """,
      [
        .bytes(settings.serverID.bytes), namespace,
        .integer(lsn.map { Int64($0.rawValue) } ?? -1), .text(settings.ownAddress),
        .bytes(settings.client),
      ])
    do throws(PostgresError) {
      return rows.count == 0 || rows.isNull(0, 0) ? nil : try rows.bytes(0, 0)
    } catch {
      throw .postgres(error)
    }
  }

  /// Says that this server is gone.
  func leave() throws(ClusterError) {
    // Another process may go by the same name, which goes on.
    _ = try execute(
      "DELETE FROM dendro.server WHERE id = $1 AND opening = $2",
      [.bytes(settings.serverID.bytes), .bytes(settings.client)])
  }

  /// Who leads, and how far the log is; makes the namespace if there is none.
  func head() throws(ClusterError) -> SharedHead {
    if let head = try findHead() { return head }
    _ = try execute(
      """
      INSERT INTO dendro.head (namespace, epoch, token, leader, lsn, chain)
      VALUES ($1, 0, $2, $2, 0, $3) ON CONFLICT DO NOTHING
      """,
      [namespace, .bytes([]), .bytes(LogChain(of: clusterID, settings.namespace).bytes)])
    guard let head = try findHead() else {
      throw .setBack("PostgreSQL has lost the namespace \(settings.namespace) while it was made")
    }
    return head
  }

  private func findHead() throws(ClusterError) -> SharedHead? {
    let rows = try execute(
      """
      SELECT h.epoch, h.token, h.leader, h.lsn, h.chain, s.counter, s.address, s.opening
      FROM dendro.head h LEFT JOIN dendro.server s ON s.id = h.leader WHERE h.namespace = $1
      """, [namespace])
    guard rows.count > 0 else { return nil }
    do throws(PostgresError) {
      return SharedHead(
        epoch: Epoch(number: try rows.integer(0, 0), token: try rows.bytes(0, 1)),
        leader: ServerID(bytes: try rows.bytes(0, 2)),
        position: try rows.position(0, lsn: 3, chain: 4),
        leaderCounter: rows.isNull(0, 5) ? nil : try rows.integer(0, 5),
        leaderAddress: rows.isNull(0, 6) ? "" : try rows.text(0, 6),
        leaderOpening: rows.isNull(0, 7)
          ? nil : ClusterSettings.openingText(of: try rows.bytes(0, 7)))
    } catch {
      throw .postgres(error)
    }
  }

  // MARK: Leading

  /// Begins an epoch, unless another server was first.
  ///
  /// - Parameters:
  ///   - epoch: that which ends.
  ///   - token: of the new one.
  /// - Returns: the new epoch, and where the log ends from which this server leads; nil if another server was first.
  func takeOver(
    from epoch: Epoch, token: [UInt8]
  ) throws(ClusterError) -> (epoch: Epoch, end: LogPosition)? {
    let rows = try execute(
      """
      UPDATE dendro.head SET epoch = epoch + 1, token = $2, leader = $3
      WHERE namespace = $1 AND epoch = $4 AND token = $5 RETURNING epoch, lsn, chain
      """,
      [
        namespace, .bytes(token), .bytes(settings.serverID.bytes), .integer(epoch.number),
        .bytes(epoch.token),
      ])
    guard rows.count > 0 else { return nil }
    do throws(PostgresError) {
      return (
        Epoch(number: try rows.integer(0, 0), token: token),
        try rows.position(0, lsn: 1, chain: 2)
      )
    } catch {
      throw .postgres(error)
    }
  }

  /// Ends the leading of a namespace.
  ///
  /// - Parameter successor: the server that takes over next; the other servers wait for it as for a leader. With `none`, the
  ///   first server that looks takes over.
  func resign(_ epoch: Epoch, to successor: ServerID = .none) throws(ClusterError) {
    _ = try execute(
      "UPDATE dendro.head SET leader = $4 WHERE namespace = $1 AND epoch = $2 AND token = $3",
      [namespace, .integer(epoch.number), .bytes(epoch.token), .bytes(successor.bytes)])
  }

  /// Leaves a namespace to others that another server has left to this one, which does not lead yet.
  func resignAsSuccessor() throws(ClusterError) {
    _ = try execute(
      "UPDATE dendro.head SET leader = $2 WHERE namespace = $1 AND leader = $3",
      [namespace, .bytes(ServerID.none.bytes), .bytes(settings.serverID.bytes)])
  }

  /// Moves the head behind a batch and inserts that, or does neither.
  ///
  /// - Parameter timeout: without an answer for so long the outcome is not known.
  /// - Returns: whether it was done now. If not, the batch stands if its row says so: see `stands(_:)`.
  func append(_ batch: SharedBatch, timeout: Duration) throws(ClusterError) -> Bool {
    let rows = try execute(
      """
      WITH moved AS (
        UPDATE dendro.head SET lsn = $6, chain = $7
        WHERE namespace = $1 AND epoch = $2 AND token = $3 AND lsn = $4 AND chain = $5
        RETURNING namespace)
      INSERT INTO dendro.log (namespace, last, first, epoch, token, chain, size, body)
      SELECT namespace, $6, $8, $2, $3, $7, $9, $10 FROM moved
      """,
      [
        namespace, .integer(batch.epoch.number), .bytes(batch.epoch.token),
        .integer(Int64(batch.before.lsn.rawValue)), .bytes(batch.before.chain.bytes),
        .integer(Int64(batch.after.lsn.rawValue)), .bytes(batch.after.chain.bytes),
        .integer(Int64(batch.before.lsn.next.rawValue)), .integer(Int64(batch.body.count)),
        .bytes(batch.body),
      ], timeout: timeout)
    return rows.affectedCount > 0
  }

  /// Whether a batch is in the log; nil if the log may have had it before that was trimmed.
  func stands(_ batch: SharedBatch) throws(ClusterError) -> Bool? {
    let rows = try execute(
      """
      SELECT epoch, token, chain, first, last FROM dendro.log
      WHERE namespace = $1 AND last >= $2 ORDER BY last LIMIT 1
      """, [namespace, .integer(Int64(batch.after.lsn.rawValue))])
    guard rows.count > 0 else {
      return try head().position.lsn < batch.after.lsn ? false : nil
    }
    do throws(PostgresError) {
      if try rows.lsn(0, 3) > batch.after.lsn { return nil }
      let epoch = Epoch(number: try rows.integer(0, 0), token: try rows.bytes(0, 1))
      let end = try rows.position(0, lsn: 4, chain: 2)
      return epoch == batch.epoch && end == batch.after
    } catch {
      throw .postgres(error)
    }
  }

  // MARK: Reading the log

  /// The chain of the log up to a write, if a batch ends there that is in the log, or a checkpoint is there; nil if not.
  func chain(at lsn: LogSequenceNumber) throws(ClusterError) -> LogChain? {
    if lsn == .zero { return LogChain(of: clusterID, settings.namespace) }
    let rows = try execute(
      """
      SELECT chain FROM dendro.log WHERE namespace = $1 AND last = $2
      UNION ALL SELECT chain FROM dendro.checkpoint WHERE namespace = $1 AND lsn = $2
      """, [namespace, .integer(Int64(lsn.rawValue))])
    guard rows.count > 0 else { return nil }
    do throws(PostgresError) {
      return LogChain(bytes: try rows.bytes(0, 0))
    } catch {
      throw .postgres(error)
    }
  }

  /// Whether the log has a batch that begins up to a write and ends behind it.
  func spans(_ lsn: LogSequenceNumber) throws(ClusterError) -> Bool {
    let rows = try execute(
      "SELECT first FROM dendro.log WHERE namespace = $1 AND last > $2 ORDER BY last LIMIT 1",
      [namespace, .integer(Int64(lsn.rawValue))])
    guard rows.count > 0 else { return false }
    do throws(PostgresError) {
      return try rows.lsn(0, 0) <= lsn
    } catch {
      throw .postgres(error)
    }
  }

  /// The batches behind a write, in their order: some megabytes of them at most, and at least one if there is one.
  func batches(behind lsn: LogSequenceNumber) throws(ClusterError) -> [LoggedBatch] {
    guard let end = try endOfBatches(behind: lsn, byteCount: Self.readByteCount) else {
      return []
    }
    let rows = try execute(
      """
      SELECT first, last, chain, body FROM dendro.log
      WHERE namespace = $1 AND last > $2 AND last <= $3 ORDER BY last
      """, [namespace, .integer(Int64(lsn.rawValue)), .integer(Int64(end.rawValue))])
    var batches: [LoggedBatch] = []
    do throws(PostgresError) {
      for row in 0..<rows.count {
        batches.append(
          LoggedBatch(
            firstLSN: try rows.lsn(row, 0), end: try rows.position(row, lsn: 1, chain: 2),
            body: try rows.bytes(row, 3)))
      }
    } catch {
      throw .postgres(error)
    }
    return batches
  }

  /// Where the first batches behind a write end, of so many bytes and some hundreds at most, and at least one; nil if
  /// there is none.
  ///
  /// - Parameter end: where the last one ends at most; nil: that does not matter.
  func endOfBatches(
    behind lsn: LogSequenceNumber, upTo end: LogSequenceNumber? = nil, byteCount limit: Int64
  ) throws(ClusterError) -> LogSequenceNumber? {
    let rows = try execute(
      """
      SELECT last, size FROM dendro.log WHERE namespace = $1 AND last > $2 AND last <= $3
      ORDER BY last LIMIT 512
      """,
      [
        namespace, .integer(Int64(lsn.rawValue)),
        .integer(end.map { Int64($0.rawValue) } ?? .max),
      ])
    var byteCount: Int64 = 0
    var last: LogSequenceNumber?
    do throws(PostgresError) {
      for row in 0..<rows.count {
        byteCount += min(max(try rows.integer(row, 1), 0), 1 << 40)
        if last != nil, byteCount > limit { break }
        last = try rows.lsn(row, 0)
      }
    } catch {
      throw .postgres(error)
    }
    return last
  }

  /// Bytes of batches that are read at once, unless a single one has more.
  private static let readByteCount: Int64 = 8 << 20
}

/// A batch as it is appended.
struct SharedBatch: Sendable {
  let epoch: Epoch
  /// Where the log ends before it, and with it.
  let before: LogPosition
  let after: LogPosition
  let body: [UInt8]
}

/// A batch as the log has it.
struct LoggedBatch: Sendable {
  let firstLSN: LogSequenceNumber
  /// Where the log ends with it.
  let end: LogPosition
  let body: [UInt8]
}

extension PostgresRows {
  func lsn(_ row: Int, _ column: Int) throws(PostgresError) -> LogSequenceNumber {
    guard let number = UInt64(exactly: try integer(row, column)) else {
      throw .malformed("the number of a write in the schema dendro is negative")
    }
    return LogSequenceNumber(number)
  }

  func position(
    _ row: Int, lsn: Int, chain: Int
  ) throws(PostgresError) -> LogPosition {
    guard let hash = LogChain(bytes: try bytes(row, chain)) else {
      throw .malformed("a chain in the schema dendro has the wrong length")
    }
    return LogPosition(lsn: try self.lsn(row, lsn), chain: hash)
  }
}
