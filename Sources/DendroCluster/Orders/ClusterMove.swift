import DendroStorage

/// Has one server lead a namespace instead of another one.
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
    if head.leader == target.id { return false }
    let drained = try connection.execute(
      "SELECT target FROM dendro.drain WHERE target = $1 OR target = $2",
      [.text(target.id.description), .text(target.address)])
    guard drained.count == 0 else {
      throw .refused("\(server) is drained: 'dendro cluster drain --end' lets it lead again")
    }
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
    let deadline = ContinuousClock.now + patience
    while true {
      let now = try connection.head(of: namespace)
      if now.leader == target.id { return true }
      guard now.epoch == head.epoch else {
        throw .refused("another server has taken over in between")
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
