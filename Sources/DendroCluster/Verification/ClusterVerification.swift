import DendroEngine
import DendroPlatform
import DendroStorage
import DendroTree

/// What the servers of a namespace have at one moment of its log, compared by the hashes that each has made of its own data.
package struct ClusterVerification: Sendable {
  package struct Server: Sendable {
    /// As hexadecimal digits.
    package let name: String
    /// Where clients reach it; nil if it takes no requests.
    package let address: String?
    /// Of its data, as `dendro hash` has it; nil if it has not answered.
    package let hash: UInt64?
    /// Of what is kept beside the data: rules, and what is to be done when clients are gone.
    package let systemHash: UInt64?
  }

  /// What has come of it.
  package enum Verdict: Hashable, Sendable {
    /// All servers that are there have answered, and have the same.
    case agree
    /// Two servers at least have something else.
    case differ
    /// Those that have answered have the same, and some that are there have not answered.
    case incomplete
  }

  /// The write behind which the data were compared.
  package let lsn: UInt64
  /// Those that are there: their counters move.
  package let servers: [Server]

  package var verdict: Verdict {
    let answers = servers.compactMap { server in
      server.hash.flatMap { hash in server.systemHash.map { [hash, $0] } }
    }
    if Set(answers).count > 1 { return .differ }
    return answers.count < servers.count ? .incomplete : .agree
  }

  /// Has all servers of a namespace hash what they have behind one write, and waits for them.
  ///
  /// - Parameters:
  ///   - namespace: of the servers.
  ///   - address: of PostgreSQL, as libpq reads it.
  ///   - patience: how long a server that is there may take.
  /// - Throws: `RepairFailure`: refused if there is no such namespace, or if another command asks for the same; failed with
  ///   `DatabaseError.Code.unavailable` if PostgreSQL does not answer, or no server does.
  package static func run(
    _ namespace: String, address: String, patience: Duration = .seconds(120)
  ) throws(RepairFailure) -> ClusterVerification {
    let connection = try OperatorConnection(address)
    // A leader that is very busy may have gone on before it could keep a state.
    var attempt = 1
    while true {
      let asking = Asking(connection, namespace, patience)
      defer { asking.end() }
      let (result, lacksState) = try asking.run()
      if !lacksState || attempt == 5 { return result }
      attempt += 1
    }
  }
}

/// One attempt.
private final class Asking {
  private let connection: OperatorConnection
  private let namespace: String
  private let patience: Duration
  private let request = Environment.system.randomness.bytes(VerificationRequest.idByteCount)
  private var watched: [ServerID: Watched] = [:]

  private struct Watched {
    var server: OperatorConnection.Server
    var moved: ContinuousClock.Instant?
  }

  private struct Answer {
    var isReady = false
    var isMissing = false
    var hashes: VerificationAnswer.Hashes?
  }

  /// Within it, a server that is there raises its counter.
  private static let beatDelay = Duration.milliseconds(2500)
  /// One that does not for so long is gone.
  private static let goneDelay = Duration.seconds(10)

  init(_ connection: OperatorConnection, _ namespace: String, _ patience: Duration) {
    self.connection = connection
    self.namespace = namespace
    self.patience = patience
  }

  /// - Returns: and whether a server had no state to hash.
  func run() throws(RepairFailure) -> (ClusterVerification, lacksState: Bool) {
    _ = try connection.head(of: namespace)
    _ = try connection.execute(
      """
      INSERT INTO dendro.verification (namespace, request, lsn) VALUES ($1, $2, -1)
      ON CONFLICT (namespace) DO UPDATE SET request = $2, lsn = -1
      """, [.text(namespace), .bytes(request)])
    // A server may have answered just after a command before had ended.
    _ = try connection.execute(
      "DELETE FROM dendro.verified WHERE namespace = $1 AND request <> $2",
      [.text(namespace), .bytes(request)])
    try waitUntilReady()
    guard watched.values.contains(where: { $0.moved != nil }) else {
      throw RepairFailure(.engine(.unavailable("no server of \(namespace) is there")))
    }
    let lsn = try connection.head(of: namespace).lsn
    let named = try connection.execute(
      "UPDATE dendro.verification SET lsn = $3 WHERE namespace = $1 AND request = $2",
      [.text(namespace), .bytes(request), .integer(Int64(clamping: lsn.rawValue))])
    guard named.affectedCount > 0 else {
      throw .refused("another command has begun to compare the servers of \(namespace)")
    }
    let answers = try waitForAnswers()
    // One that has gone since has said what it has.
    let gone = watched.values.map(\.server).filter { server in
      answers[server.id] != nil && !alive.contains { $0.id == server.id }
    }
    let servers = (alive + gone).map { server in
      let hashes = answers[server.id]?.hashes
      return ClusterVerification.Server(
        name: server.id.description, address: server.address.isEmpty ? nil : server.address,
        hash: hashes?.data, systemHash: hashes?.system)
    }
    let lacksState = answers.values.contains { $0.isMissing }
    guard lacksState || servers.contains(where: { $0.hash != nil }) else {
      throw RepairFailure(.engine(.unavailable("no server of \(namespace) has answered")))
    }
    return (ClusterVerification(lsn: lsn.rawValue, servers: servers), lacksState)
  }

  /// Removes the question and the answers.
  func end() {
    for table in ["verification", "verified"] {
      _ = try? connection.execute(
        "DELETE FROM dendro.\(table) WHERE namespace = $1 AND request = $2",
        [.text(namespace), .bytes(request)])
    }
  }

  /// Those that are there, in the order of their addresses.
  private var alive: [OperatorConnection.Server] {
    watched.values.filter { $0.moved.map { .now - $0 < Self.goneDelay } ?? false }
      .map(\.server).sorted { ($0.address, $0.id.description) < ($1.address, $1.id.description) }
  }

  private func look() throws(RepairFailure) -> [ServerID: Answer] {
    for server in try connection.servers() where server.namespace == namespace {
      let known = watched[server.id]
      let hasMoved = known.map { $0.server.counter != server.counter } ?? false
      watched[server.id] = Watched(server: server, moved: hasMoved ? .now : known?.moved)
    }
    let rows = try connection.execute(
      "SELECT server, kind, data, system FROM dendro.verified WHERE namespace = $1 AND request = $2",
      [.text(namespace), .bytes(request)])
    let answers = try connection.reading { () throws(PostgresError) in
      var answers: [ServerID: Answer] = [:]
      for row in 0..<rows.count {
        let kind = try rows.integer(row, 1)
        var answer = Answer(isReady: true, isMissing: kind == 1)
        if kind == 2 {
          answer.hashes = VerificationAnswer.Hashes(
            data: UInt64(bitPattern: try rows.integer(row, 2)),
            system: UInt64(bitPattern: try rows.integer(row, 3)))
        }
        answers[ServerID(bytes: try rows.bytes(row, 0))] = answer
      }
      return answers
    }
    // One that answers is there.
    for id in answers.keys where watched[id]?.moved == nil { watched[id]?.moved = .now }
    return answers
  }

  /// Waits until all servers that are there keep states; those of an older release never do.
  private func waitUntilReady() throws(RepairFailure) {
    let begun = ContinuousClock.now
    while true {
      let answers = try look()
      let isReady = watched.keys.allSatisfy { answers[$0] != nil }
      let isDecided = alive.allSatisfy { answers[$0.id] != nil }
      let waited = ContinuousClock.now - begun
      if isReady && !watched.isEmpty || isDecided && waited >= Self.beatDelay
        || waited >= Self.beatDelay * 2
      {
        return
      }
      connection.pause()
    }
  }

  private func waitForAnswers() throws(RepairFailure) -> [ServerID: Answer] {
    let deadline = ContinuousClock.now + patience
    while true {
      let answers = try look()
      let isDone = alive.allSatisfy { server in
        // What did not keep states has nothing to answer.
        guard let answer = answers[server.id] else { return true }
        return answer.isMissing || answer.hashes != nil
      }
      if isDone || .now >= deadline { return answers }
      connection.pause()
    }
  }
}
