import Dendro
import DendroEngine
import DendroStorage
import DendroTestSupport
import Foundation
import Synchronization
import Testing

@testable import DendroCluster

@Suite(
  "Leading that is moved", .enabled(if: PostgresServer.isInstalled, "needs PostgreSQL"))
struct OrderTests {
  private let cluster: TestCluster

  init() throws { cluster = try TestCluster() }

  private func name(_ database: Database) throws -> String {
    try #require(database.clusterStatus?.server)
  }

  private func drain(
    _ server: String, patience: Duration = .seconds(30)
  ) async throws -> [ClusterDrain.Namespace] {
    let address = cluster.postgres.address
    return try await waiting { try ClusterDrain(address).begin(server, patience: patience) }
  }

  private func move(to server: String) async throws -> Bool {
    let address = cluster.postgres.address
    return try await waiting { try ClusterMove.run("shop", to: server, address: address) }
  }

  /// Counts up at several servers until it is ended.
  private final class Writing: Sendable {
    private let isEnded = Atomic<Bool>(false)
    private let tasks = Mutex<[Task<Int, Never>]>([])
    let failures = Mutex<[String]>([])

    init(at databases: [Database]) {
      for database in databases {
        let task = Task.detached { [self] in
          var count = 0
          while !isEnded.load(ordering: .relaxed) {
            do {
              try await database.reference(withPath: "count").setValue(ServerValue.increment(1))
              count += 1
            } catch {
              failures.withLock { $0.append("\(error)") }
            }
          }
          return count
        }
        tasks.withLock { $0.append(task) }
      }
    }

    /// - Returns: how many writes were acknowledged.
    func end() async -> Int {
      isEnded.store(true, ordering: .relaxed)
      var count = 0
      for task in tasks.withLock({ $0 }) { count += await task.value }
      return count
    }
  }

  @Test("a drained leader hands over, and no write fails; it leads again if it is alone")
  func drain() async throws {
    // A leader that is drained gives what is on its way half a beat.
    let databases = try ["1", "2", "3"].map {
      try cluster.open($0) { $0.beatInterval = .seconds(1) }
    }
    let writing = Writing(at: databases)
    try await eventually("they write") { (databases[2].clusterStatus?.lsn ?? 0) > 50 }
    let drained = try name(databases[0])
    let others = try databases[1...].map(name)
    let namespaces = try await drain(drained)
    #expect(namespaces.map(\.name) == ["shop"])
    #expect(namespaces.first?.leader.map { others.contains($0) } == true)
    try await eventually("the drained one follows") {
      databases[0].clusterStatus?.role == .follower
    }
    let lsn = databases[0].clusterStatus?.lsn ?? 0
    try await eventually("they write") { (databases[0].clusterStatus?.lsn ?? 0) > lsn + 50 }
    let count = await writing.end()
    #expect(writing.failures.value == [])
    try await eventually("all have all") { Set(databases.map { $0.clusterStatus?.lsn }).count == 1 }
    #expect(try await databases[0].value("count") == count)

    // One leader goes, the other one follows it; the drained one holds back.
    let leader = try #require(databases.first { $0.isLeader })
    let rest = try #require(databases[1...].first { $0 !== leader })
    try await leader.close()
    try await eventually("the rest leads") { rest.isLeader }
    #expect(!databases[0].isLeader)
    try await rest.close()
    try await eventually("the drained one is alone, and leads") { databases[0].isLeader }
    // It goes on to lead, since there is no other.
    #expect(try await drain(drained, patience: .seconds(1)).map(\.leader) == [nil])
    #expect(databases[0].isLeader)
    // One that comes takes over from it at once.
    let again = try cluster.open("2")
    try await eventually("the one that comes leads") { again.isLeader }
    let address = cluster.postgres.address
    try await waiting { try ClusterDrain(address).end(drained) }
    await #expect(throws: RepairFailure.self) {
      try await waiting { try ClusterDrain(address).end(drained) }
    }
    try await again.close()
    try await eventually("it leads as any other") { databases[0].isLeader }
    try await databases[0].close()
  }

  @Test("a namespace moves to the server that is named, and to no other")
  func move() async throws {
    let databases = try ["1", "2", "3"].map { try cluster.open($0) }
    for number in [1, 2, 0, 2, 1] {
      let epoch = databases[0].clusterStatus?.epoch ?? 0
      #expect(try await move(to: try name(databases[number])))
      try await eventually("it leads") { databases[number].isLeader }
      #expect(databases[number].clusterStatus?.epoch == epoch + 1)
      try await databases[number].reference(withPath: "n").setValue(number)
      try await eventually("the others follow") {
        databases.allSatisfy { $0.clusterStatus?.epoch == epoch + 1 }
      }
    }
    #expect(try await !move(to: try name(databases[1])))
    #expect(try cluster.postgres.query("SELECT count(*) FROM dendro.move") == "0")
    let place = try cluster.postgres.query("SELECT target FROM dendro.place")
    #expect(place == (try name(databases[1])))
    await #expect(throws: RepairFailure.self) { _ = try await move(to: "nobody") }
    await #expect(throws: RepairFailure.self) { _ = try await drain("nobody") }
    _ = try await drain(try name(databases[2]))
    await #expect(throws: RepairFailure.self) { _ = try await move(to: try name(databases[2])) }
    for database in databases { try await database.close() }
  }

  @Test("operators' commands do not believe an old primary that goes on to run")
  func oldPrimary() async throws {
    let standby = try PostgresServer(standbyOf: cluster.postgres, name: "standby")
    try cluster.postgres.setSynchronousStandbys("standby")
    let address =
      "postgresql://postgres@127.0.0.1:\(cluster.postgres.port),127.0.0.1:\(standby.port)/postgres"
    cluster.address = address
    let databases = [try cluster.open("1"), try cluster.open("2")]
    #expect(databases[0].isLeader)
    try standby.promote()
    let other = try name(databases[1])
    // The old primary says that the first one leads, whatever the servers do since.
    _ = try await waiting { try ClusterMove.run("shop", to: other, address: address) }
    try await eventually("it leads") { databases[1].isLeader }
    #expect(
      try await !waiting { try ClusterMove.run("shop", to: other, address: address) })
    try await waiting { try ClusterMove.end("shop", address: address) }
    let namespaces = try await waiting {
      try ClusterDrain(address).begin(other, patience: .seconds(30))
    }
    #expect(namespaces.map(\.leader) == [try name(databases[0])])
    try await waiting { try ClusterDrain(address).end(other) }
    for database in databases { try await database.close() }
  }

  /// Opens a server that takes clients, and hands over quickly what another one is to lead.
  private func open(
    _ server: String, _ name: String, namespace: String = "shop"
  ) throws -> Database {
    try cluster.open(name, namespace: namespace) { settings in
      settings.ownAddress = "http://" + server
      settings.spreadDelay = .milliseconds(300)
    }
  }

  @Test("a namespace that was moved is led by its server whenever that is there, until that ends")
  func place() async throws {
    let address = cluster.postgres.address
    let first = try open("a", "1")
    var second = try open("b", "2")
    _ = try await move(to: "b")
    try await eventually("it leads") { second.isLeader }
    for round in 1...2 {
      try await second.close()
      try await eventually("the other one leads") { first.isLeader }
      // It comes again under another name, at the same address.
      if round == 2 { try FileManager.default.removeItem(atPath: cluster.directory("2")) }
      second = try open("b", "2")
      try await eventually("it leads again") { second.isLeader }
      try await eventually("the other one follows") { first.clusterStatus?.role == .follower }
      try await first.reference(withPath: "n").setValue(1)
    }
    try await waiting { try ClusterMove.end("shop", address: address) }
    await #expect(throws: RepairFailure.self) {
      try await waiting { try ClusterMove.end("shop", address: address) }
    }
    try await second.close()
    try await eventually("the other one leads") { first.isLeader }
    second = try open("b", "2")
    // A leader of one namespace is not to be spared work.
    let epoch = first.clusterStatus?.epoch
    let counts =
      "SELECT counter > \(try counter(of: first) + 12) FROM dendro.server WHERE id = \(try id(of: first))"
    try await eventually("it has looked often") { try cluster.postgres.query(counts) == "t" }
    #expect(first.isLeader && first.clusterStatus?.epoch == epoch)
    try await second.close()
    try await first.close()
  }

  private func id(of database: Database) throws -> String { "'\\x\(try name(database))'" }

  private func counter(of database: Database) throws -> Int {
    let text = try cluster.postgres.query(
      "SELECT counter FROM dendro.server WHERE id = \(try id(of: database))")
    return try #require(Int(text))
  }

  @Test("namespaces are spread over the servers that are there")
  func spreading() async throws {
    let names = (1...6).map { "n\($0)" }
    let first = try names.map { try open("a", "1-" + $0, namespace: $0) }
    try await eventually("one leads all") { first.allSatisfy(\.isLeader) }
    let second = try names.map { try open("b", "2-" + $0, namespace: $0) }
    // Each of them has drawn an id, and the higher one is to lead.
    let count = try zip(first, second).count { try name($0) < name($1) }
    try await eventually("\(count) are to lead, or as many as balance them") {
      second.count(where: \.isLeader) >= min(count, 3)
    }
    for (index, database) in first.enumerated() {
      try await database.reference(withPath: "n").setValue(index)
      #expect(try await database.value("n") == index)
    }
    for database in second { try await database.close() }
    try await eventually("one leads all") { first.allSatisfy(\.isLeader) }
    for database in first { try await database.close() }
  }
}

@Suite("Who leads by an operator's order")
struct SuccessionTests {
  private static let (own, second, third) = (
    ServerID(bytes: [1]), ServerID(bytes: [2]), ServerID(bytes: [3])
  )
  private let start = ContinuousClock.now

  /// As a leader sees the others after some looks: the second one moves and has `secondLSN`; the third one as `isThere` says.
  private func succession(
    secondLSN: UInt64 = 10, isThere: Bool = true
  ) -> (Succession, [Succession.Server]) {
    var succession = Succession()
    var servers: [Succession.Server] = []
    for look in 1...4 {
      servers = [
        .init(id: Self.own, counter: Int64(look), lsn: .init(10), address: "http://own"),
        .init(
          id: Self.second, counter: Int64(look), lsn: .init(secondLSN), address: "http://second"),
        .init(
          id: Self.third, counter: isThere ? Int64(look) : 7, lsn: .init(10),
          address: "http://third"),
      ]
      succession.note(
        servers, end: .init(10), interval: .seconds(1), now: start + .seconds(look))
    }
    return (succession, servers)
  }

  private func successor(
    _ orders: ClusterOrders, secondLSN: UInt64 = 10, isThere: Bool = true
  ) -> ServerID? {
    let (succession, servers) = succession(secondLSN: secondLSN, isThere: isThere)
    return succession.successor(
      orders, epoch: 5, of: Self.own, at: "http://own", among: servers)
  }

  @Test("a leader leaves to a server that is there, in step, and not drained itself")
  func leaving() {
    #expect(successor(ClusterOrders()) == nil)
    #expect(successor(ClusterOrders(drained: ["http://second"])) == nil)
    for name in ["http://own", Self.own.description] {
      #expect(successor(ClusterOrders(drained: [name])) == Self.third)
    }
    #expect(
      successor(ClusterOrders(place: "http://second", drained: ["http://own"])) == Self.second)
    let withoutThird = ClusterOrders(drained: ["http://own", "http://third"])
    #expect(successor(withoutThird) == Self.second)
    #expect(successor(withoutThird, secondLSN: 9) == nil)
    #expect(successor(ClusterOrders(drained: ["http://own"]), isThere: false) == Self.second)
    #expect(
      successor(ClusterOrders(drained: ["http://own"]), secondLSN: 9, isThere: false) == nil)
    #expect(
      successor(ClusterOrders(drained: ["http://own", "http://second", "http://third"])) == nil)
  }

  @Test("a leader leaves to the server that is named, in that epoch alone, once it is there")
  func moving() {
    #expect(successor(ClusterOrders(move: (Self.third, 5))) == Self.third)
    #expect(successor(ClusterOrders(move: (Self.third, 4))) == nil)
    #expect(successor(ClusterOrders(move: (Self.own, 5))) == nil)
    #expect(successor(ClusterOrders(move: (Self.third, 5)), isThere: false) == nil)
  }

  /// The server that is to lead if the own one has looked for some seconds after three looks.
  private func preferred(
    _ orders: ClusterOrders, own: ServerID = own, secondLSN: UInt64 = 10, isThere: Bool = true,
    address: String = "http://third", after seconds: Int
  ) -> ServerID? {
    var (succession, servers) = succession(secondLSN: secondLSN, isThere: isThere)
    servers[2].address = address
    func look(_ second: Int) -> ServerID? {
      succession.preferred(
        orders, of: own, among: servers, after: .seconds(10), now: start + .seconds(second))?.id
    }
    #expect(look(0) == nil)
    let last = look(seconds)
    if last != nil { #expect(look(seconds + 1) == nil, "once") }
    return last
  }

  @Test("so that namespaces are spread, a leader leaves to the server with the highest id")
  func preference() {
    #expect(preferred(ClusterOrders(), after: 11) == Self.third)
    #expect(preferred(ClusterOrders(), after: 9) == nil)
    #expect(preferred(ClusterOrders(), own: Self.third, after: 99) == nil)
    #expect(preferred(ClusterOrders(), isThere: false, after: 11) == Self.second)
    #expect(preferred(ClusterOrders(), secondLSN: 9, isThere: false, after: 11) == nil)
    // It takes no clients.
    #expect(preferred(ClusterOrders(), address: "", after: 11) == Self.second)
    #expect(
      preferred(ClusterOrders(place: Self.third.description), address: "", after: 11) == Self.third)
    #expect(preferred(ClusterOrders(drained: ["http://third"]), after: 11) == Self.second)
    // An operator has named another one, which counts as long as that is there.
    #expect(preferred(ClusterOrders(place: "http://second"), after: 11) == Self.second)
    #expect(preferred(ClusterOrders(place: Self.own.description), after: 11) == nil)
    #expect(
      preferred(ClusterOrders(place: "http://third"), isThere: false, after: 11) == Self.second)
    // The id says how much longer it takes, up to twice as long.
    let last = ServerID(bytes: [0xFF])
    var succession = Succession()
    let servers = [(last, 1), (ServerID(bytes: [0xFF, 1]), 1)].map { id, counter in
      Succession.Server(id: id, counter: Int64(counter), lsn: .init(10), address: "http://x")
    }
    for look in 0...20 {
      let moved = servers.map { server in
        Succession.Server(
          id: server.id, counter: Int64(look), lsn: server.lsn, address: server.address)
      }
      let now = start + .seconds(look)
      succession.note(moved, end: .init(10), interval: .seconds(1), now: now)
      let found = succession.preferred(
        ClusterOrders(), of: last, among: moved, after: .seconds(9), now: now)
      #expect((found != nil) == (look == 19), "\(look)")
    }
  }

  @Test("a follower that is not to lead leaves that to others for a time, and then leads")
  func holdingBack() {
    let epoch = Epoch(number: 5, token: [1])
    func mayLead(_ succession: inout Succession, _ orders: ClusterOrders, after: Duration) -> Bool {
      succession.mayLead(
        orders, behind: epoch, of: Self.own, at: "http://own", delay: .seconds(3),
        now: start + after)
    }
    var free = Succession()
    #expect(mayLead(&free, ClusterOrders(move: (Self.own, 5)), after: .zero))
    #expect(mayLead(&free, ClusterOrders(move: (Self.second, 4)), after: .zero))
    for orders in [
      ClusterOrders(move: (Self.second, 5)), ClusterOrders(drained: ["http://own"]),
    ] {
      var succession = Succession()
      #expect(!mayLead(&succession, orders, after: .zero))
      #expect(!mayLead(&succession, orders, after: .seconds(2)))
      #expect(mayLead(&succession, orders, after: .seconds(3)))
      // The next time that no server leads it begins anew.
      succession.leaderIsThere()
      #expect(!mayLead(&succession, orders, after: .seconds(9)))
    }
  }
}
