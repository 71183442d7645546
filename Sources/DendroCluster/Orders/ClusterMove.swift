import DendroStorage

/// Has one server lead a namespace instead of another one, also later whenever it is there.
package struct ClusterMove {
  /// - Parameters:
  ///   - namespace: of the servers.
  ///   - server: its address or its name.
  ///   - address: of PostgreSQL, as libpq reads it.
  ///   - patience: how long the servers may take.
  /// - Returns: whether it leads only since now.
  /// - Throws: `RepairFailure`: refused if there is no such namespace or server, if that is drained, or if it does not
  ///   take over.
  package static func run(
    _ namespace: String, to server: String, address: String, patience: Duration = .seconds(15)
  ) throws(RepairFailure) -> Bool {
    let connection = try OperatorConnection(address)
    let head = try connection.head(of: namespace)
    let target = try target(server, of: namespace, connection)
    let drained = try connection.execute(
      "SELECT target FROM dendro.drain WHERE target = $1 OR target = $2",
      [.text(target.id.description), .text(target.address)])
    guard drained.count == 0 else {
      throw .refused("\(server) is drained: 'dendro cluster drain --end' lets it lead again")
    }
    let isNew = head.leader != target.id
    if isNew {
      _ = try connection.execute(
        """
        INSERT INTO dendro.move (namespace, server, epoch) VALUES ($1, $2, $3)
        ON CONFLICT (namespace) DO UPDATE SET server = $2, epoch = $3
        """, [.text(namespace), .bytes(target.id.bytes), .integer(head.epoch)])
      defer {
        _ = try? connection.execute(
          "DELETE FROM dendro.move WHERE namespace = $1 AND server = $2",
          [.text(namespace), .bytes(target.id.bytes)])
      }
      try wait(for: target.id, server, behind: head, of: namespace, patience, connection)
    }
    // A server whose directory was replaced has another name, and the same address.
    _ = try connection.execute(
      """
      INSERT INTO dendro.place (namespace, target) VALUES ($1, $2)
      ON CONFLICT (namespace) DO UPDATE SET target = $2
      """, [.text(namespace), .text(target.name)])
    return isNew
  }

  /// Leaves it to the servers again which of them leads a namespace.
  ///
  /// - Parameters:
  ///   - namespace: of the servers.
  ///   - address: of PostgreSQL, as libpq reads it.
  /// - Throws: `RepairFailure`: refused if no server was named for it.
  package static func end(_ namespace: String, address: String) throws(RepairFailure) {
    let ended = try OperatorConnection(address).execute(
      "DELETE FROM dendro.place WHERE namespace = $1", [.text(namespace)])
    guard ended.affectedCount > 0 else { throw .refused("\(namespace) was not moved") }
  }

  /// Waits until the server has taken over.
  private static func wait(
    for id: ServerID, _ server: String, behind head: OperatorConnection.Head, of namespace: String,
    _ patience: Duration, _ connection: OperatorConnection
  ) throws(RepairFailure) {
    let deadline = ContinuousClock.now + patience
    while true {
      let now = try connection.head(of: namespace)
      if now.epoch != head.epoch {
        guard now.leader == id else {
          throw .refused(
            "\(server) has not taken over, and another server has: it is not there, or too slow")
        }
        return
      }
      guard .now < deadline else {
        throw .refused("\(server) has not taken over: it is not there, or it is far behind")
      }
      connection.pause()
    }
  }

  /// Of several with one address, of which all but one are gone, that whose counter moves.
  private static func target(
    _ server: String, of namespace: String, _ connection: OperatorConnection
  ) throws(RepairFailure) -> OperatorConnection.Server {
    func found() throws(RepairFailure) -> [OperatorConnection.Server] {
      try connection.servers().filter { $0.namespace == namespace && $0.isNamed(server) }
    }
    let before = try found()
    guard let first = before.first else {
      throw .refused("\(namespace) has no server \(server)")
    }
    if before.count == 1 { return first }
    let deadline = ContinuousClock.now + .seconds(3)
    while .now < deadline {
      let moved = try found().first { now in
        before.contains { $0.id == now.id && $0.counter != now.counter }
      }
      if let moved { return moved }
      connection.pause()
    }
    throw .refused("\(server) is not there")
  }
}
