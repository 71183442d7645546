import Dendro
import DendroCluster
import DendroTestSupport
import Foundation
import Synchronization
import Testing

/// Three servers over a PostgreSQL that may have a synchronous standby, and what a nemesis does to them.
final class HistoryCluster {
  /// A server that is killed and started again.
  final class Place: Sendable {
    let name: String
    /// To each PostgreSQL, in the order of the address.
    let lines: [PostgresProxy]
    let port = Atomic<UInt16>(0)
    /// Nil: the system's.
    let clock: MovedClock?

    init(_ name: String, _ lines: [PostgresProxy], _ clock: MovedClock?) {
      self.name = name
      self.lines = lines
      self.clock = clock
    }

    var address: String {
      let hosts = lines.map { "127.0.0.1:\($0.port)" }.joined(separator: ",")
      return "postgresql://postgres@\(hosts)/postgres"
    }

    func set(_ mode: PostgresProxy.Mode) { for line in lines { line.set(mode) } }

    func cut() { for line in lines { line.cut() } }
  }

  let places: [Place]
  private(set) var servers: [ServerProcess] = []
  /// Which one takes writes.
  private var postgres: PostgresServer
  private var standby: PostgresServer?
  /// The line on which the standby follows.
  private var replication: PostgresProxy?
  /// The old primary, while it goes on to run.
  private var former: PostgresServer?
  private let folder: TemporaryFolder
  private let tally: HistoryTally
  private var random: SeededGenerator
  private var leaverCount = 0

  /// - Parameter plan: what is to happen.
  init(_ plan: [Nemesis], _ random: SeededGenerator, _ tally: HistoryTally) throws {
    self.tally = tally
    self.random = random
    folder = try TemporaryFolder()
    let diskSize = plan.contains(.diskFull) && SmallDisk.reason == nil ? Self.diskSize : nil
    postgres = try PostgresServer([], diskSize: diskSize)
    if plan.contains(where: \.needsStandby) {
      let line = try PostgresProxy(to: postgres.port)
      replication = line
      standby = try PostgresServer(
        standbyOf: postgres, at: line.address, name: "standby",
        ["wal_retrieve_retry_interval = 100ms"], diskSize: diskSize)
      try postgres.setSynchronousStandbys("standby")
    }
    var clocks: String?
    if plan.contains(.clockMoved) {
      do { clocks = try MovedClock.build(in: folder) } catch {
        tally.note(missing: .clockMoved, "\(error)")
      }
    }
    let ports = [postgres.port] + (standby.map { [$0.port] } ?? [])
    places = try (0..<3).map { [folder] number in
      let clock = try clocks.map { try MovedClock($0, "\(folder.path)/\(number).clock") }
      return Place("\(number)", try ports.map { try PostgresProxy(to: $0) }, clock)
    }
    for place in places {
      try moveClock(of: place)
      servers.append(try start(place))
    }
  }

  /// What `initdb` makes, and room for the log that is in files of 16 MB.
  private static let diskSize = 128 << 20

  private func directory(_ place: Place) -> String { "\(folder.path)/\(place.name)" }

  /// Once it shows the data, if PostgreSQL answers.
  private func start(_ place: Place) throws -> ServerProcess {
    var environment = place.clock?.environment ?? [:]
    environment["DENDRO_CLUSTER"] = place.address
    let server = try ServerProcess(directory(place), environment: environment)
    place.port.store(server.port, ordering: .relaxed)
    return server
  }

  /// A server in this process, with a copy of all that PostgreSQL has.
  func openFresh() throws -> Database {
    try Database.open(
      at: folder.path + "/fresh", replicatedBy: postgres.address, namespace: "default")
  }

  func stop() -> [Int32] { servers.map { $0.stop() } }

  /// What the servers say of themselves.
  var status: String {
    servers.map { server in
      let answer = try? HTTPClient(port: server.port)(
        "GET", "/.status.json", nil, ClusterServers.administrator)
      return "\(server.port): \(answer?.body ?? "no answer")"
    }.joined(separator: "; ")
  }

  // MARK: The nemesis

  /// Why clients may have had to wait, and since when.
  typealias Pause = (kind: HistoryTally.Pause, since: ContinuousClock.Instant)

  private func pause(_ milliseconds: Range<Int>) async throws {
    let count = milliseconds.lowerBound + random.below(milliseconds.count)
    try await Task.sleep(for: .milliseconds(count))
  }

  /// Does something, and ends it; only an old primary may go on to run, until `endFormer()`.
  func disturb(_ nemesis: Nemesis, _ history: ClientHistory) async throws -> Pause? {
    let leading = servers.firstIndex { ClusterServers.leads($0) }
    // That which leads more often than others.
    let number = leading.flatMap { random.oneIn(2) ? $0 : nil } ?? random.below(servers.count)
    let place = places[number]
    var since: Pause?
    switch nemesis {
    case .serverKilled:
      if number == leading { since = (.killed, .now) }
      servers[number].kill()
      try await pause(0..<2000)
      servers[number] = try start(place)
    case .serverStopped:
      if number == leading { since = (.ended, .now) }
      #expect(servers[number].stop() == 0)
      servers[number] = try start(place)
    case .serverFrozen:
      servers[number].freeze(true)
      try await pause(200..<5000)
      servers[number].freeze(false)
    case .directoryRemoved:
      // It may go on to run without, but takes no part any more.
      let isKilled = random.oneIn(2)
      if isKilled { servers[number].kill() }
      try removeDirectory(place)
      try await pause(0..<2000)
      servers[number].kill()
      servers[number] = try start(place)
    case .leaversKilled:
      try await killAmongLeavers(number, random.oneIn(2) ? number : leading ?? number, history)
    case .linesCut:
      for _ in 0..<5 {
        place.cut()
        try await pause(0..<100)
      }
    case .linesHeld:
      place.set([.held, .deaf, .closed][random.below(3)])
      try await pause(100..<5000)
      place.set(.open)
      place.cut()
    case .linesSlow:
      place.set(.slow)
      try await pause(100..<3000)
      place.cut()
      place.set(.open)
    case .clockMoved:
      guard place.clock != nil else { return nil }
      try moveClock(of: place)
    case .diskFull: guard try await fillDisk() else { return nil }
    case .postgresKilled:
      postgres.kill()
      try await pause(20..<300)
      try postgres.start()
    case .postgresFrozen:
      postgres.freeze(true)
      try await pause(200..<2000)
      postgres.freeze(false)
    case .failover: since = try failOver(killsPrimary: false)
    case .primaryAlone:
      replication?.set(.closed)
      try await pause(50..<500)
      // What waits for the standby is written there now, and the standby does not have it.
      if random.oneIn(2) { postgres.kill() } else { postgres.stop() }
      try postgres.start()
      try await pause(0..<1500)
      since = try failOver(killsPrimary: random.oneIn(2))
    }
    tally.note(nemesis)
    return since
  }

  private func removeDirectory(_ place: Place) throws {
    let path = directory(place)
    guard FileManager.default.fileExists(atPath: path) else { return }
    // A server that runs makes no more files in it then.
    try FileManager.default.moveItem(atPath: path, toPath: path + "-removed")
    try FileManager.default.removeItem(atPath: path + "-removed")
  }

  private func failOver(killsPrimary: Bool) throws -> Pause {
    let standby = try #require(standby)
    let begun = ContinuousClock.now
    if killsPrimary { postgres.kill() } else { former = postgres }
    try standby.promote()
    postgres = standby
    return (killsPrimary ? .failedOver : .failedOverBeside, begun)
  }

  /// As an operator does some time after a failover.
  func endFormer() {
    former?.kill()
    former = nil
  }

  /// - Parameters:
  ///   - number: the server that sessions have left.
  ///   - killed: that which is killed.
  private func killAmongLeavers(
    _ number: Int, _ killed: Int, _ history: ClientHistory
  ) async throws {
    var clients: [WebSocketClient] = []
    for _ in 0..<20 {
      leaverCount += 1
      let client = try WebSocketClient(port: servers[number].port, "/.ws?v=5&ns=default")
      var session = ClientHistory.Session(name: "leaver-\(leaverCount)")
      if session.register(at: client) {
        history.add(session)
        clients.append(client)
      }
    }
    clients.removeAll()
    try await pause(0..<60)
    servers[killed].kill()
    try await pause(0..<2000)
    servers[killed] = try start(places[killed])
  }

  /// Moves the clock by hours, in either direction, also of a server that runs.
  private func moveClock(of place: Place) throws {
    guard let clock = place.clock else { return }
    let difference = Duration.seconds(random.below(24 * 3600) - 12 * 3600)
    try clock.set(difference)
    guard servers.count == places.count else { return }
    // The hello has the server's time.
    let hello = try WebSocketClient(
      port: place.port.load(ordering: .relaxed), "/.ws?v=5&ns=default"
    ).hello
    let digits = hello.split(separator: "\"ts\":").last?.prefix { $0.isNumber }
    let time = try #require(digits.flatMap { Int64($0) }, "\(hello)")
    let expected = Date().timeIntervalSince1970 + Double(difference.components.seconds)
    #expect(
      abs(Double(time) / 1000 - expected) < 60, "the clock of a server is not moved: \(hello)")
  }

  /// - Returns: false if no disk can be filled here.
  private func fillDisk() async throws -> Bool {
    guard let disk = postgres.disk else {
      tally.note(missing: .diskFull, SmallDisk.reason ?? "no disk")
      return false
    }
    try disk.fill()
    let refusal = #expect(throws: PostgresServer.Failure.self) {
      try postgres.query(
        "CREATE TABLE large AS SELECT repeat('x', 1000) FROM generate_series(1, 1000)")
    }
    #expect(refusal?.description.contains("No space left") == true, "\(refusal as Any)")
    // Without a new file for its log PostgreSQL ends.
    if random.oneIn(2) { _ = try? postgres.query("SELECT pg_switch_wal()") }
    try await pause(200..<3000)
    try disk.free()
    if !postgres.isRunning { try postgres.start() }
    return true
  }
}
