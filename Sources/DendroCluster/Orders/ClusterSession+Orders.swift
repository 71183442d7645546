import DendroStorage

/// What operators ask of the servers of a namespace, as PostgreSQL has it at one moment.
struct ClusterOrders: Sendable {
  /// All servers are to hash one state.
  var verification: VerificationRequest?
  /// A server is to lead, and the epoch that is to end for it.
  var move: (server: ServerID, epoch: Int64)?
  /// The server that is to lead whenever it is there, by its address or its name.
  var place: String?
  /// The servers that are not to lead, by their names or their addresses.
  var drained: Set<String> = []

  /// Whether a server is the one that is to lead whenever it is there.
  func isPlace(_ server: Succession.Server) -> Bool {
    place == server.id.description || !server.address.isEmpty && place == server.address
  }

  /// Whether a server is not to lead.
  func drains(_ server: ServerID, at address: String) -> Bool {
    drained.contains(server.description) || !address.isEmpty && drained.contains(address)
  }
}

extension ClusterSession {
  /// Reads what operators ask for. If the schema is older than its tables, it makes them; if it may not, nothing is asked for.
  func orders() throws(ClusterError) -> ClusterOrders {
    if let orderPause, .now < orderPause { return ClusterOrders() }
    do throws(ClusterError) {
      return try findOrders()
    } catch {
      // No such table, or no right to it.
      guard error.isMissingTable else { throw error }
      if try !makeTables() { orderPause = .now + Self.orderPauseDuration }
      return ClusterOrders()
    }
  }

  private static let orderPauseDuration = Duration.seconds(60)

  /// How many namespaces each server leads, by the servers' addresses.
  func leaderCounts() throws(ClusterError) -> [String: Int64] {
    let rows = try execute(
      """
      SELECT server.address, count(*) FROM dendro.head
      JOIN dendro.server ON server.id = head.leader GROUP BY server.address
      """, [])
    var counts: [String: Int64] = [:]
    do throws(PostgresError) {
      for row in 0..<rows.count { counts[try rows.text(row, 0)] = try rows.integer(row, 1) }
    } catch {
      throw .postgres(error)
    }
    return counts
  }

  private func findOrders() throws(ClusterError) -> ClusterOrders {
    let rows = try execute(
      """
      SELECT CAST(1 AS bigint), request, lsn, CAST('' AS text)
      FROM dendro.verification WHERE namespace = $1
      UNION ALL SELECT CAST(2 AS bigint), server, epoch, CAST('' AS text)
      FROM dendro.move WHERE namespace = $1
      UNION ALL SELECT CAST(3 AS bigint), CAST('' AS bytea), CAST(0 AS bigint), target
      FROM dendro.drain
      UNION ALL SELECT CAST(4 AS bigint), CAST('' AS bytea), CAST(0 AS bigint), target
      FROM dendro.place WHERE namespace = $1
      """, [namespace])
    var orders = ClusterOrders()
    do throws(PostgresError) {
      for row in 0..<rows.count {
        let (bytes, number) = (try rows.bytes(row, 1), try rows.integer(row, 2))
        switch try rows.integer(row, 0) {
        case 1:
          orders.verification = VerificationRequest(
            id: bytes, lsn: UInt64(exactly: number).map { LogSequenceNumber($0) })
        case 2: orders.move = (ServerID(bytes: bytes), number)
        case 3: orders.drained.insert(try rows.text(row, 3))
        default: orders.place = try rows.text(row, 3)
        }
      }
    } catch {
      throw .postgres(error)
    }
    return orders
  }
}
