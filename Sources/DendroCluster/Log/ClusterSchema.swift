/// The tables of all clusters' servers, in the schema `dendro`.
///
/// Only what PostgreSQL and the distributed engines with its protocol have in common: no advisory locks, no large objects,
/// no notifications.
enum ClusterSchema {
  /// Raised when servers of an older release could no longer work beside those of this one.
  static let version: Int64 = 1

  /// Makes each table that is missing, also in a schema of an older release.
  static let creation = """
    CREATE SCHEMA IF NOT EXISTS dendro;
    CREATE TABLE IF NOT EXISTS dendro.cluster (
      one bigint PRIMARY KEY, id bytea NOT NULL, version bigint NOT NULL);
    CREATE TABLE IF NOT EXISTS dendro.head (
      namespace text PRIMARY KEY, epoch bigint NOT NULL, token bytea NOT NULL, leader bytea NOT NULL,
      lsn bigint NOT NULL, chain bytea NOT NULL);
    CREATE TABLE IF NOT EXISTS dendro.log (
      namespace text NOT NULL, last bigint NOT NULL, first bigint NOT NULL, epoch bigint NOT NULL,
      token bytea NOT NULL, chain bytea NOT NULL, size bigint NOT NULL, body bytea NOT NULL,
      PRIMARY KEY (namespace, last));
    CREATE TABLE IF NOT EXISTS dendro.server (
      id bytea PRIMARY KEY, namespace text NOT NULL, counter bigint NOT NULL, lsn bigint NOT NULL,
      address text NOT NULL, opening bytea NOT NULL);
    CREATE TABLE IF NOT EXISTS dendro.line (
      opening bytea PRIMARY KEY, namespace text NOT NULL, address text NOT NULL, key bytea NOT NULL);
    CREATE TABLE IF NOT EXISTS dendro.request (
      namespace text NOT NULL, client bytea NOT NULL, number bigint NOT NULL, epoch bigint NOT NULL,
      count bigint NOT NULL, body bytea NOT NULL, PRIMARY KEY (namespace, client, number));
    CREATE TABLE IF NOT EXISTS dendro.answer (
      namespace text NOT NULL, client bytea NOT NULL, number bigint NOT NULL,
      epoch bigint NOT NULL, lsn bigint NOT NULL, kind bigint NOT NULL, first bigint NOT NULL,
      second bigint NOT NULL, body bytea NOT NULL, PRIMARY KEY (namespace, client, number));
    CREATE TABLE IF NOT EXISTS dendro.checkpoint (
      namespace text NOT NULL, upload bytea NOT NULL, lsn bigint NOT NULL, chain bytea NOT NULL,
      parts bigint NOT NULL, size bigint NOT NULL, hash bytea NOT NULL,
      PRIMARY KEY (namespace, upload));
    CREATE TABLE IF NOT EXISTS dendro.checkpoint_part (
      namespace text NOT NULL, upload bytea NOT NULL, part bigint NOT NULL, body bytea NOT NULL,
      PRIMARY KEY (namespace, upload, part));
    CREATE TABLE IF NOT EXISTS dendro.publisher (
      namespace text PRIMARY KEY, upload bytea NOT NULL, server bytea NOT NULL,
      counter bigint NOT NULL);
    CREATE TABLE IF NOT EXISTS dendro.verification (
      namespace text PRIMARY KEY, request bytea NOT NULL, lsn bigint NOT NULL);
    CREATE TABLE IF NOT EXISTS dendro.verified (
      namespace text NOT NULL, request bytea NOT NULL, server bytea NOT NULL, kind bigint NOT NULL,
      lsn bigint NOT NULL, data bigint NOT NULL, system bigint NOT NULL,
      PRIMARY KEY (namespace, request, server));
    CREATE TABLE IF NOT EXISTS dendro.move (
      namespace text PRIMARY KEY, server bytea NOT NULL, epoch bigint NOT NULL);
    CREATE TABLE IF NOT EXISTS dendro.drain (target text PRIMARY KEY);
    CREATE TABLE IF NOT EXISTS dendro.place (namespace text PRIMARY KEY, target text NOT NULL);
    """

  /// Makes what is missing.
  ///
  /// - Parameter newID: of the cluster, if there is none yet.
  /// - Returns: the name of the cluster.
  static func prepare(
    _ connection: PostgresConnection, newID: [UInt8], timeout: Duration
  ) throws(ClusterError) -> ClusterID {
    // Two servers may do this at the same time: PostgreSQL refuses one of them then, who looks again.
    for attempt in 1... {
      let found: (id: [UInt8], version: Int64)?
      do throws(PostgresError) {
        found = try findOrMake(connection, newID, timeout)
      } catch {
        guard case .refused = error, attempt < 5 else { throw .postgres(error) }
        continue
      }
      if let found { return try check(found) }
    }
    preconditionFailure("the last attempt throws")
  }

  private static func findOrMake(
    _ connection: PostgresConnection, _ newID: [UInt8], _ timeout: Duration
  ) throws(PostgresError) -> (id: [UInt8], version: Int64)? {
    if let found = try find(connection, timeout) { return found }
    try connection.executeScript(creation, timeout: timeout)
    _ = try connection.execute(
      "INSERT INTO dendro.cluster (one, id, version) VALUES (1, $1, $2) ON CONFLICT DO NOTHING",
      [.bytes(newID), .integer(version)], timeout: timeout)
    return try find(connection, timeout)
  }

  private static func find(
    _ connection: PostgresConnection, _ timeout: Duration
  ) throws(PostgresError) -> (id: [UInt8], version: Int64)? {
    do throws(PostgresError) {
      let rows = try connection.execute(
        "SELECT id, version FROM dendro.cluster WHERE one = 1", timeout: timeout)
      guard rows.count > 0 else { return nil }
      return (try rows.bytes(0, 0), try rows.integer(0, 1))
    } catch {
      // No such table, or no such schema.
      if case .refused("42P01", _) = error { return nil }
      if case .refused("3F000", _) = error { return nil }
      throw error
    }
  }

  private static func check(
    _ found: (id: [UInt8], version: Int64)
  ) throws(ClusterError) -> ClusterID {
    guard found.version <= version else { throw .newerSchema(version: found.version) }
    guard let id = ClusterID(bytes: found.id) else {
      throw .postgres(.malformed("the table dendro.cluster has an id of \(found.id.count) bytes"))
    }
    return id
  }
}

extension PostgresError {
  /// Whether a table is not there, or not for this server.
  var isMissingTable: Bool {
    if case .refused(let state, _) = self { ["42P01", "42501"].contains(state) } else { false }
  }
}

extension ClusterError {
  /// Whether a table is not there, or not for this server.
  var isMissingTable: Bool {
    if case .postgres(let error) = self { error.isMissingTable } else { false }
  }
}
