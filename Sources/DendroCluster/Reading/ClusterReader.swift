package import Dendro

/// Reads what PostgreSQL has of a cluster. It takes no part: it makes no tables and writes nothing. For one thread at a time.
package final class ClusterReader {
  private var connection: PostgresConnection
  private let timeout: Duration
  private let interruption: Interruption
  private let hosts: HostChoice
  /// Which host was to be tried first when it connected.
  private let firstHost: Int

  /// - Parameters:
  ///   - address: as libpq reads it.
  ///   - hosts: which host is tried first.
  ///   - timeout: for each answer.
  /// - Throws: `DatabaseError.Code.unavailable` if PostgreSQL does not answer, `DatabaseError.Code.invalidArgument` if
  ///   the address is none.
  init(
    _ address: String, hosts: HostChoice, timeout: Duration = .seconds(5)
  ) throws(DatabaseError) {
    self.timeout = timeout
    self.hosts = hosts
    firstHost = hosts.first
    do throws(PostgresError) {
      interruption = try Interruption()
      connection = try PostgresConnection(
        address, timeout: timeout, interruption: interruption, hosts: hosts)
    } catch {
      throw DatabaseError(.postgres(error))
    }
  }

  /// As the other one. Each reader begins with the first host of the address.
  package convenience init(
    _ address: String, timeout: Duration = .seconds(5)
  ) throws(DatabaseError) {
    try self.init(address, hosts: HostChoice(), timeout: timeout)
  }

  /// Whether it can be asked, and no other host was found to be the right one since it connected.
  var isUsable: Bool { connection.isUsable && hosts.first == firstHost }

  /// - Throws: `DatabaseError.Code.invalidArgument` if libpq cannot read an address.
  package static func check(_ address: String) throws(DatabaseError) {
    do throws(PostgresError) {
      _ = try PostgresAddress(address)
    } catch {
      // Without libpq nothing can tell, and the connection that follows reports that libpq is missing.
      guard case .badAddress = error else { return }
      throw DatabaseError(.postgres(error))
    }
  }

  /// The names of all namespaces; none if there is no cluster.
  package func namespaces() throws(DatabaseError) -> [String] {
    try read { (connection, timeout) throws(PostgresError) in
      let rows = try connection.execute("SELECT namespace FROM dendro.head", timeout: timeout)
      return try rows.map { (row) throws(PostgresError) in try rows.text(row, 0) }
    } ?? []
  }

  package func hasNamespace(_ name: String) throws(DatabaseError) -> Bool {
    try read { (connection, timeout) throws(PostgresError) in
      try connection.execute(
        "SELECT namespace FROM dendro.head WHERE namespace = $1", [.text(name)], timeout: timeout
      ).count > 0
    } ?? false
  }

  /// Which cluster it is, and its namespaces; nil if there is none.
  func identity() throws(DatabaseError) -> (id: ClusterID, namespaces: [String])? {
    let found = try read { (connection, timeout) throws(PostgresError) in
      let rows = try connection.execute(
        "SELECT id FROM dendro.cluster WHERE one = 1", timeout: timeout)
      return rows.count > 0 ? ClusterID(bytes: try rows.bytes(0, 0)) : nil
    }
    guard let id = found ?? nil else { return nil }
    return (id, try namespaces())
  }

  /// All of it, as of one moment; nil if there is no cluster.
  ///
  /// Before, it watches the servers until it has heard all of them, but no longer than a follower waits for the leader. If it
  /// hears none and the address has further hosts, it watches there too: an old primary that still runs has a cluster whose
  /// servers have left it. If none is heard anywhere, the first answer counts.
  package func overview() throws(DatabaseError) -> ClusterOverview? {
    var watched: Set<Int> = []
    var first: Result<ClusterOverview?, DatabaseError>?
    while watched.insert(connection.host).inserted {
      let found = Result { () throws(DatabaseError) in try watchedOverview() }
      if case .success(let overview?) = found, overview.isHeard { return overview }
      if case .success? = first {} else { first = found }
      guard watched.count < connection.hostCount,
        let next = try? connection.toNextHost(timeout: timeout)
      else { break }
      connection = next
    }
    return try first?.get() ?? nil
  }

  private func watchedOverview() throws(DatabaseError) -> ClusterOverview? {
    let deadline = ContinuousClock.now + ClusterSettings.takeoverDelay
    let before = try counters()
    var silent = Set(before.keys)
    while !silent.isEmpty, .now < deadline {
      interruption.wait(min(.milliseconds(100), deadline - .now))
      let now = try counters()
      silent = silent.filter { now[$0] == before[$0] }
    }
    var found = try overviewNow()
    found?.note(silent: silent)
    return found
  }

  /// How often each server, by its name, has raised its counter.
  private func counters() throws(DatabaseError) -> [String: Int64] {
    let pairs = try read { (connection, timeout) throws(PostgresError) in
      let rows = try connection.execute("SELECT id, counter FROM dendro.server", timeout: timeout)
      return try rows.map { (row) throws(PostgresError) in
        (ServerID(bytes: try rows.bytes(row, 0)).description, try rows.integer(row, 1))
      }
    }
    return Dictionary(pairs ?? []) { $1 }
  }

  private func overviewNow() throws(DatabaseError) -> ClusterOverview? {
    var found =
      try read { (connection, timeout) throws(PostgresError) in
        try connection.executeScript(
          "BEGIN TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY", timeout: timeout)
        let overview = try Self.overview(connection, timeout)
        try connection.executeScript("COMMIT", timeout: timeout)
        return overview
      } ?? nil
    guard found != nil else { return nil }
    found?.note(drained: drained())
    found?.note(places: places())
    return found
  }

  /// The servers that are not to lead, by their names or addresses; none for a role that may not read which.
  private func drained() -> Set<String> {
    let names = try? read { (connection, timeout) throws(PostgresError) in
      let rows = try connection.execute("SELECT target FROM dendro.drain", timeout: timeout)
      return try rows.map { (row) throws(PostgresError) in try rows.text(row, 0) }
    }
    return Set((names ?? nil) ?? [])
  }

  /// The servers that are to lead, by the names of their namespaces; none for a role that may not read which.
  private func places() -> [String: String] {
    let places = try? read { (connection, timeout) throws(PostgresError) in
      let rows = try connection.execute(
        "SELECT namespace, target FROM dendro.place", timeout: timeout)
      return try rows.map { (row) throws(PostgresError) in
        (try rows.text(row, 0), try rows.text(row, 1))
      }
    }
    return Dictionary((places ?? nil) ?? []) { $1 }
  }

  /// - Returns: nil if there are no such tables.
  private func read<R>(
    _ body: (PostgresConnection, Duration) throws(PostgresError) -> R
  ) throws(DatabaseError) -> R? {
    do throws(PostgresError) {
      return try body(connection, timeout)
    } catch {
      switch error {
      case .refused("42P01", _), .refused("3F000", _): return nil
      default: throw DatabaseError(.postgres(error))
      }
    }
  }

  private static func overview(
    _ connection: PostgresConnection, _ timeout: Duration
  ) throws(PostgresError) -> ClusterOverview? {
    let cluster = try connection.execute(
      "SELECT id, version FROM dendro.cluster WHERE one = 1", timeout: timeout)
    guard cluster.count > 0 else { return nil }
    let heads = try connection.execute(
      """
      SELECT h.namespace, h.epoch, h.leader, h.lsn, s.address
      FROM dendro.head h LEFT JOIN dendro.server s ON s.id = h.leader ORDER BY h.namespace
      """, timeout: timeout)
    var namespaces = try heads.map { (row) throws(PostgresError) in
      let leader = ServerID(bytes: try heads.bytes(row, 2))
      return ClusterOverview.Namespace(
        name: try heads.text(row, 0), epoch: try heads.integer(row, 1),
        leader: leader == .none ? nil : leader.description,
        leaderAddress: heads.isNull(row, 4) ? nil : try heads.address(row, 4),
        lsn: UInt64(clamping: try heads.integer(row, 3)))
    }
    let logs = try connection.execute(
      """
      SELECT namespace, count(*), CAST(sum(size) AS bigint) FROM dendro.log GROUP BY namespace
      """, timeout: timeout)
    for row in 0..<logs.count {
      let name = try logs.text(row, 0)
      guard let index = namespaces.firstIndex(where: { $0.name == name }) else { continue }
      namespaces[index].rowCount = try logs.integer(row, 1)
      namespaces[index].byteCount = try logs.integer(row, 2)
    }
    let servers = try connection.execute(
      "SELECT id, namespace, counter, lsn, address FROM dendro.server ORDER BY address, id",
      timeout: timeout)
    for row in 0..<servers.count {
      let name = try servers.text(row, 1)
      guard let index = namespaces.firstIndex(where: { $0.name == name }) else { continue }
      namespaces[index].servers.append(
        ClusterOverview.Server(
          name: ServerID(bytes: try servers.bytes(row, 0)).description,
          address: try servers.address(row, 4),
          lsn: UInt64(clamping: try servers.integer(row, 3)),
          counter: try servers.integer(row, 2)))
    }
    return ClusterOverview(
      id: ServerID(bytes: try cluster.bytes(0, 0)).description, version: try cluster.integer(0, 1),
      namespaces: namespaces)
  }
}

extension ClusterOverview {
  fileprivate mutating func note(silent: Set<String>) {
    for space in namespaces.indices {
      for index in namespaces[space].servers.indices {
        namespaces[space].servers[index].isSilent =
          silent.contains(namespaces[space].servers[index].name)
      }
    }
  }

  fileprivate mutating func note(places: [String: String]) {
    for index in namespaces.indices { namespaces[index].place = places[namespaces[index].name] }
  }

  fileprivate mutating func note(drained: Set<String>) {
    for space in namespaces.indices {
      for index in namespaces[space].servers.indices {
        let server = namespaces[space].servers[index]
        namespaces[space].servers[index].isDrained =
          drained.contains(server.name) || server.address.map(drained.contains) ?? false
      }
    }
  }
}

extension PostgresRows {
  fileprivate func map<R>(
    _ transform: (Int) throws(PostgresError) -> R
  ) throws(PostgresError) -> [R] {
    var results: [R] = []
    for row in 0..<count { results.append(try transform(row)) }
    return results
  }

  fileprivate func address(_ row: Int, _ column: Int) throws(PostgresError) -> String? {
    let text = try text(row, column)
    return text.isEmpty ? nil : text
  }
}
