extension ClusterSession {
  /// Says where other servers open lines to this one, if there is a table for that. What servers that are gone have said is
  /// removed.
  func offer(_ address: LineAddress) throws(ClusterError) {
    // The schema may be one of an earlier release.
    if try !isOffered(address), try makeTables() { _ = try isOffered(address) }
  }

  /// - Returns: false if there is no table, or none for this server.
  private func isOffered(_ address: LineAddress) throws(ClusterError) -> Bool {
    do throws(ClusterError) {
      try writeOffer(address)
      return true
    } catch {
      guard error.isMissingTable else { throw error }
      return false
    }
  }

  private func writeOffer(_ address: LineAddress) throws(ClusterError) {
    _ = try execute(
      """
      DELETE FROM dendro.line WHERE namespace = $1 AND opening <> $2
        AND opening NOT IN (SELECT opening FROM dendro.server)
      """, [namespace, .bytes(client)])
    _ = try execute(
      """
      INSERT INTO dendro.line (opening, namespace, address, key) VALUES ($1, $2, $3, $4)
      ON CONFLICT (opening) DO UPDATE SET address = $3, key = $4
      """, [.bytes(client), namespace, .text(address.text), .bytes(address.key)])
  }

  /// Says that there are no more lines to this server.
  func withdrawLine() throws(ClusterError) {
    _ = try execute("DELETE FROM dendro.line WHERE opening = $1", [.bytes(client)])
  }

  /// Where the leader of an epoch takes lines; nil if it takes none.
  func leaderLine(epoch: Int64) throws(ClusterError) -> LineAddress? {
    do throws(ClusterError) {
      return try findLeaderLine(epoch: epoch)
    } catch {
      guard error.isMissingTable else { throw error }
      return nil
    }
  }

  private func findLeaderLine(epoch: Int64) throws(ClusterError) -> LineAddress? {
    let rows = try execute(
      """
      SELECT l.address, l.key FROM dendro.head h JOIN dendro.server s ON s.id = h.leader
        JOIN dendro.line l ON l.opening = s.opening AND l.namespace = h.namespace
      WHERE h.namespace = $1 AND h.epoch = $2
      """, [namespace, .integer(epoch)])
    guard rows.count > 0 else { return nil }
    do throws(PostgresError) {
      return LineAddress(try rows.text(0, 0), key: try rows.bytes(0, 1))
    } catch {
      throw .postgres(error)
    }
  }
}
