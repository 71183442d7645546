import DendroStorage

/// Has a server leave the leading of all its namespaces to others, and lead no more until that ends.
package struct ClusterDrain {
  /// A namespace that the server led.
  package struct Namespace: Sendable {
    package let name: String
    /// The server that leads it now; nil if the drained one still does, since no other is there and in step.
    package let leader: String?
  }

  private let connection: OperatorConnection

  /// - Parameter address: of PostgreSQL, as libpq reads it.
  package init(_ address: String) throws(RepairFailure) {
    connection = try OperatorConnection(address)
  }

  /// Begins, and waits until other servers lead.
  ///
  /// - Parameters:
  ///   - server: its address, with all its namespaces, or its name, which is one namespace's.
  ///   - patience: how long the servers may take.
  /// - Returns: the namespaces that it led, in the order of their names.
  /// - Throws: `RepairFailure`: refused if there is no such server.
  package func begin(
    _ server: String, patience: Duration = .seconds(15)
  ) throws(RepairFailure) -> [Namespace] {
    let servers = try connection.servers().filter { $0.isNamed(server) }
    guard let first = servers.first else {
      throw .refused("there is no server \(server) in this cluster")
    }
    let target = first.id.description == server ? server : first.address
    let led = try leaders().filter { _, head in servers.contains { $0.id == head.leader } }
    _ = try connection.execute(
      "INSERT INTO dendro.drain (target) VALUES ($1) ON CONFLICT DO NOTHING", [.text(target)])
    let deadline = ContinuousClock.now + patience
    var now = try leaders()
    /// Who leads it instead; nil if that is one that is drained, or none yet.
    func successor(of name: String) -> ServerID? {
      guard let head = now[name], head.epoch != led[name]?.epoch, head.leader != .none,
        !servers.contains(where: { $0.id == head.leader })
      else { return nil }
      return head.leader
    }
    while led.keys.contains(where: { successor(of: $0) == nil }), .now < deadline {
      connection.pause()
      now = try leaders()
    }
    if led.keys.contains(where: { successor(of: $0) == nil }) {
      connection.doubt()
      now = try leaders()
    }
    let all = try connection.servers()
    return led.keys.sorted().map { name in
      let leader = successor(of: name)
      return Namespace(name: name, leader: leader.flatMap { id in all.first { $0.id == id }?.name })
    }
  }

  /// Lets a server lead again, once that is its turn.
  ///
  /// - Parameter server: as it was given to `begin`.
  /// - Throws: `RepairFailure`: refused if it is not drained.
  package func end(_ server: String) throws(RepairFailure) {
    let word = OperatorConnection.address(server)
    let ended = try connection.execute(
      "DELETE FROM dendro.drain WHERE target = $1 OR target = $2 OR target = $3",
      [.text(word), .text("http://" + word), .text("https://" + word)])
    guard ended.affectedCount > 0 else { throw .refused("\(server) is not drained") }
  }

  private func leaders() throws(RepairFailure) -> [String: (leader: ServerID, epoch: Int64)] {
    let rows = try connection.execute("SELECT namespace, leader, epoch FROM dendro.head")
    return try connection.reading { () throws(PostgresError) in
      var leaders: [String: (leader: ServerID, epoch: Int64)] = [:]
      for row in 0..<rows.count {
        leaders[try rows.text(row, 0)] = (
          ServerID(bytes: try rows.bytes(row, 1)), try rows.integer(row, 2)
        )
      }
      return leaders
    }
  }
}
