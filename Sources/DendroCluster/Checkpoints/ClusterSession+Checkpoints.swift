import DendroStorage

extension ClusterSession {
  // MARK: Reading checkpoints

  /// The checkpoints of which all parts are there, the newest first.
  func checkpoints() throws(ClusterError) -> [PublishedCheckpoint] {
    let rows = try execute(
      """
      SELECT upload, lsn, chain, parts, size, hash FROM dendro.checkpoint
      WHERE namespace = $1 ORDER BY lsn DESC, upload
      """, [namespace])
    var checkpoints: [PublishedCheckpoint] = []
    do throws(PostgresError) {
      for row in 0..<rows.count {
        checkpoints.append(
          PublishedCheckpoint(
            upload: try rows.bytes(row, 0), position: try rows.position(row, lsn: 1, chain: 2),
            partCount: try rows.integer(row, 3), byteCount: try rows.integer(row, 4),
            hash: try rows.bytes(row, 5)))
      }
    } catch {
      throw .postgres(error)
    }
    return checkpoints
  }

  /// - Returns: a part of a checkpoint's file; nil if it is not there, or no longer.
  func part(_ number: Int64, of upload: [UInt8]) throws(ClusterError) -> [UInt8]? {
    let rows = try execute(
      """
      SELECT body FROM dendro.checkpoint_part WHERE namespace = $1 AND upload = $2 AND part = $3
      """, [namespace, .bytes(upload), .integer(number)])
    guard rows.count > 0 else { return nil }
    do throws(PostgresError) {
      return try rows.bytes(0, 0)
    } catch {
      throw .postgres(error)
    }
  }

  // MARK: Publishing

  /// Which upload holds the right to publish, and how far it is.
  struct Publisher: Hashable, Sendable {
    var upload: [UInt8]
    var server: ServerID
    /// Raised as long as the server goes on.
    var counter: Int64
  }

  /// Who publishes a checkpoint now; nil if no server does.
  func publisher() throws(ClusterError) -> Publisher? {
    let rows = try execute(
      "SELECT upload, server, counter FROM dendro.publisher WHERE namespace = $1", [namespace])
    guard rows.count > 0 else { return nil }
    do throws(PostgresError) {
      return Publisher(
        upload: try rows.bytes(0, 0), server: ServerID(bytes: try rows.bytes(0, 1)),
        counter: try rows.integer(0, 2))
    } catch {
      throw .postgres(error)
    }
  }

  /// Begins an upload, unless another one has begun.
  ///
  /// - Parameter abandoned: the one that it takes the place of, if that has stood still.
  /// - Returns: whether it has begun.
  func beginUpload(
    _ upload: [UInt8], by server: ServerID, insteadOf abandoned: Publisher?
  ) throws(ClusterError) -> Bool {
    guard let abandoned else {
      let rows = try execute(
        """
        INSERT INTO dendro.publisher (namespace, upload, server, counter) VALUES ($1, $2, $3, 0)
        ON CONFLICT DO NOTHING
        """, [namespace, .bytes(upload), .bytes(server.bytes)])
      return rows.affectedCount > 0
    }
    let rows = try execute(
      """
      UPDATE dendro.publisher SET upload = $2, server = $3, counter = 0
      WHERE namespace = $1 AND upload = $4 AND counter = $5
      """,
      [
        namespace, .bytes(upload), .bytes(server.bytes), .bytes(abandoned.upload),
        .integer(abandoned.counter),
      ])
    return rows.affectedCount > 0
  }

  /// Says that an upload goes on.
  ///
  /// - Returns: false if another one has taken its place.
  func goOn(_ upload: [UInt8]) throws(ClusterError) -> Bool {
    try execute(
      "UPDATE dendro.publisher SET counter = counter + 1 WHERE namespace = $1 AND upload = $2",
      [namespace, .bytes(upload)]
    ).affectedCount > 0
  }

  /// Sends a part of a checkpoint's file.
  ///
  /// - Returns: false if another upload has taken the place of this one: nothing was sent then.
  func send(_ part: [UInt8], _ number: Int64, of upload: [UInt8]) throws(ClusterError) -> Bool {
    try execute(
      """
      WITH held AS (
        UPDATE dendro.publisher SET counter = counter + 1 WHERE namespace = $1 AND upload = $2
        RETURNING namespace)
      INSERT INTO dendro.checkpoint_part (namespace, upload, part, body)
      SELECT namespace, $2, $3, $4 FROM held
      """, [namespace, .bytes(upload), .integer(number), .bytes(part)]
    ).affectedCount > 0
  }

  /// Has a checkpoint count, of which all parts were sent.
  ///
  /// - Returns: false if another upload has taken the place of this one, or if the log does not have the checkpoint's
  ///   position.
  func complete(_ checkpoint: PublishedCheckpoint) throws(ClusterError) -> Bool {
    try execute(
      """
      WITH held AS (
        UPDATE dendro.publisher SET counter = counter + 1 WHERE namespace = $1 AND upload = $2
        RETURNING namespace)
      INSERT INTO dendro.checkpoint (namespace, upload, lsn, chain, parts, size, hash)
      SELECT namespace, $2, $3, $4, $5, $6, $7 FROM held
      WHERE EXISTS (SELECT 1 FROM dendro.log l WHERE l.namespace = $1 AND l.last = $3 AND l.chain = $4)
      """,
      [
        namespace, .bytes(checkpoint.upload), .integer(Int64(checkpoint.lsn.rawValue)),
        .bytes(checkpoint.position.chain.bytes), .integer(checkpoint.partCount),
        .integer(checkpoint.byteCount), .bytes(checkpoint.hash),
      ]
    ).affectedCount > 0
  }

  /// Lets other servers publish.
  func endUpload(_ upload: [UInt8]) throws(ClusterError) {
    _ = try execute(
      "DELETE FROM dendro.publisher WHERE namespace = $1 AND upload = $2",
      [namespace, .bytes(upload)])
  }

  // MARK: Removing

  func remove(_ checkpoint: PublishedCheckpoint) throws(ClusterError) {
    _ = try execute(
      "DELETE FROM dendro.checkpoint WHERE namespace = $1 AND upload = $2",
      [namespace, .bytes(checkpoint.upload)])
  }

  /// Removes some of the parts that belong to no checkpoint: of uploads that were abandoned, and of checkpoints that were
  /// removed.
  ///
  /// - Parameter upload: which is complete. Nothing is removed if another one has taken its place: that has parts, and no
  ///   checkpoint yet.
  /// - Returns: false if there were none.
  func removeParts(during upload: [UInt8]) throws(ClusterError) -> Bool {
    try execute(
      """
      DELETE FROM dendro.checkpoint_part WHERE namespace = $1 AND (upload, part) IN (
        SELECT p.upload, p.part FROM dendro.checkpoint_part p WHERE p.namespace = $1
        AND NOT EXISTS (
          SELECT 1 FROM dendro.checkpoint c WHERE c.namespace = $1 AND c.upload = p.upload)
        AND EXISTS (SELECT 1 FROM dendro.publisher h WHERE h.namespace = $1 AND h.upload = $2)
        LIMIT \(Self.removedPartCount))
      """, [namespace, .bytes(upload)]
    ).affectedCount > 0
  }

  private static let removedPartCount = 16

  // MARK: The log

  /// What PostgreSQL adds to the bytes of a batch, about.
  static let rowByteCount: Int64 = 200

  /// The bytes of log behind a write.
  ///
  /// - Parameters:
  ///   - end: the last write that counts; nil: all.
  ///   - limit: where counting may end.
  func logByteCount(
    behind lsn: LogSequenceNumber, upTo end: LogSequenceNumber? = nil, limit: Int64
  ) throws(ClusterError) -> Int64 {
    let rows = try execute(
      """
      SELECT CAST(coalesce(sum(size + \(Self.rowByteCount)), 0) AS bigint) FROM (
        SELECT size FROM dendro.log WHERE namespace = $1 AND last > $2 AND last <= $3
        ORDER BY last LIMIT $4) AS rows
      """,
      [
        namespace, .integer(Int64(lsn.rawValue)),
        .integer(end.map { Int64($0.rawValue) } ?? .max),
        .integer(limit / Self.rowByteCount + 1),
      ])
    do throws(PostgresError) {
      return try rows.integer(0, 0)
    } catch {
      throw .postgres(error)
    }
  }

  /// Whether a copy that ends at a write can be continued from the log.
  func continues(behind lsn: LogSequenceNumber) throws(ClusterError) -> Bool {
    let rows = try execute(
      """
      SELECT first FROM dendro.log WHERE namespace = $1 AND last > $2 ORDER BY last LIMIT 1
      """, [namespace, .integer(Int64(lsn.rawValue))])
    guard rows.count > 0 else { return try head().position.lsn <= lsn }
    do throws(PostgresError) {
      return try rows.lsn(0, 0) <= lsn.next
    } catch {
      throw .postgres(error)
    }
  }

  /// Removes some of the oldest batches that end at a write or before it.
  ///
  /// - Parameter start: a write up to which all were removed before.
  /// - Returns: up to where they are removed now; nil if there were none.
  func trimLog(
    behind start: LogSequenceNumber, upTo end: LogSequenceNumber
  ) throws(ClusterError) -> LogSequenceNumber? {
    guard
      let last = try endOfBatches(behind: start, upTo: end, byteCount: Self.trimmedByteCount)
    else { return nil }
    _ = try execute(
      "DELETE FROM dendro.log WHERE namespace = $1 AND last > $2 AND last <= $3",
      [namespace, .integer(Int64(start.rawValue)), .integer(Int64(last.rawValue))])
    return last
  }

  /// Bytes of batches that are removed by one statement, unless a single one has more.
  private static let trimmedByteCount: Int64 = 16 << 20

  // MARK: Servers

  /// What the servers of the namespace have said of themselves.
  func servers() throws(ClusterError)
    -> [ServerID: (row: Peers.Row, lsn: LogSequenceNumber?, address: String)]
  {
    let rows = try execute(
      "SELECT id, opening, counter, lsn, address FROM dendro.server WHERE namespace = $1",
      [namespace])
    var servers: [ServerID: (Peers.Row, LogSequenceNumber?, String)] = [:]
    do throws(PostgresError) {
      for row in 0..<rows.count {
        servers[ServerID(bytes: try rows.bytes(row, 0))] = (
          Peers.Row(
            opening: ClusterSettings.openingText(of: try rows.bytes(row, 1)),
            counter: try rows.integer(row, 2)),
          UInt64(exactly: try rows.integer(row, 3)).map { LogSequenceNumber($0) },
          try rows.text(row, 4)
        )
      }
    } catch {
      throw .postgres(error)
    }
    return servers
  }
}
