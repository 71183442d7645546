import Dendro
import DendroStorage

/// A connection to PostgreSQL of a command that asks the servers for something, and takes no part itself. For one thread.
///
/// Nothing that it reads counts before it has committed something: an old primary that goes on to run shows what was there
/// before its synchronous standby took its place, and commits nothing.
final class OperatorConnection {
  private var connection: PostgresConnection
  /// Whether the host has committed something since it was connected.
  private var isConfirmed = false
  private let timeout: Duration
  private let interruption: Interruption

  init(_ address: String, timeout: Duration = .seconds(5)) throws(RepairFailure) {
    self.timeout = timeout
    do throws(PostgresError) {
      interruption = try Interruption()
      connection = try PostgresConnection(
        address, timeout: timeout, interruption: interruption)
    } catch {
      throw RepairFailure(.postgres(error))
    }
  }

  /// Executes a statement. If the schema is older than its tables, it makes them.
  ///
  /// - Throws: `RepairFailure`: refused if there is no cluster.
  func execute(
    _ sql: String, _ parameters: [PostgresValue] = []
  ) throws(RepairFailure) -> PostgresRows {
    do throws(PostgresError) {
      do throws(PostgresError) {
        return try executeAtAnyHost(sql, parameters)
      } catch {
        guard case .refused("42P01", _) = error, try hasCluster() else { throw error }
        try connection.executeScript(ClusterSchema.creation, timeout: timeout)
        return try executeAtAnyHost(sql, parameters)
      }
    } catch {
      switch error {
      case .refused("42P01", _), .refused("3F000", _):
        throw .refused("no servers share databases over this PostgreSQL")
      default: throw RepairFailure(.postgres(error))
      }
    }
  }

  /// If a host commits nothing, the next one is asked.
  private func executeAtAnyHost(
    _ sql: String, _ parameters: [PostgresValue]
  ) throws(PostgresError) -> PostgresRows {
    for _ in 1..<connection.hostCount {
      do throws(PostgresError) {
        return try executeAtHost(sql, parameters)
      } catch {
        guard error.isSilence else { throw error }
        connection = try connection.toNextHost(timeout: timeout)
        isConfirmed = false
      }
    }
    return try executeAtHost(sql, parameters)
  }

  private func executeAtHost(
    _ sql: String, _ parameters: [PostgresValue]
  ) throws(PostgresError) -> PostgresRows {
    if !isConfirmed {
      // One transaction, which leaves nothing behind.
      try connection.executeScript(
        """
        INSERT INTO dendro.drain (target) VALUES ('') ON CONFLICT DO NOTHING;
        DELETE FROM dendro.drain WHERE target = ''
        """, timeout: timeout)
      isConfirmed = true
    }
    return try connection.execute(sql, parameters, timeout: timeout)
  }

  private func hasCluster() throws(PostgresError) -> Bool {
    try connection.execute("SELECT id FROM dendro.cluster WHERE one = 1", timeout: timeout).count
      > 0
  }

  /// PostgreSQL may have failed over since: what is read next counts only behind another commit.
  func doubt() { isConfirmed = false }

  /// Waits between two looks.
  func pause() { interruption.wait(.milliseconds(50)) }

  // MARK: What there is

  /// Who leads a namespace, and how far its log is.
  struct Head {
    var epoch: Int64
    var leader: ServerID
    var lsn: LogSequenceNumber
  }

  /// - Throws: `RepairFailure`: refused if there is no such namespace.
  func head(of namespace: String) throws(RepairFailure) -> Head {
    let rows = try execute(
      "SELECT epoch, leader, lsn FROM dendro.head WHERE namespace = $1", [.text(namespace)])
    guard rows.count > 0 else {
      throw .refused("there is no namespace \(namespace) in this cluster")
    }
    return try reading { () throws(PostgresError) in
      Head(
        epoch: try rows.integer(0, 0), leader: ServerID(bytes: try rows.bytes(0, 1)),
        lsn: try rows.lsn(0, 2))
    }
  }

  /// One server of one namespace, as it has said of itself.
  struct Server: Sendable {
    var id: ServerID
    var namespace: String
    var counter: Int64
    var address: String

    /// What a person knows it by.
    var name: String { address.isEmpty ? id.description : address }

    /// Whether a word of a command line means it.
    func isNamed(_ word: String) -> Bool {
      let word = OperatorConnection.address(word)
      return id.description == word || !address.isEmpty && (address == word || host == word)
    }

    /// The address without `http://`.
    private var host: Substring {
      address.firstRange(of: "://").map { address[$0.upperBound...] } ?? address[...]
    }
  }

  /// The address that a word of a command line means, which may end with a slash as a copied URL does.
  static func address(_ word: String) -> String {
    word.hasSuffix("/") ? String(word.dropLast()) : word
  }

  /// The servers of all namespaces, in the order of their addresses.
  func servers() throws(RepairFailure) -> [Server] {
    let rows = try execute(
      "SELECT id, namespace, counter, address FROM dendro.server ORDER BY address, namespace, id")
    return try reading { () throws(PostgresError) in
      var servers: [Server] = []
      for row in 0..<rows.count {
        servers.append(
          Server(
            id: ServerID(bytes: try rows.bytes(row, 0)), namespace: try rows.text(row, 1),
            counter: try rows.integer(row, 2), address: try rows.text(row, 3)))
      }
      return servers
    }
  }

  func reading<R>(
    _ body: () throws(PostgresError) -> R
  ) throws(RepairFailure) -> R {
    do throws(PostgresError) {
      return try body()
    } catch {
      throw RepairFailure(.postgres(error))
    }
  }
}
