import Dendro
import DendroEngine
import DendroTestSupport
import DendroTree
import Foundation
import Synchronization
import Testing

@testable import DendroCluster

@Suite("Servers over one PostgreSQL", .enabled(if: PostgresServer.isInstalled, "needs PostgreSQL"))
struct ClusterTests {
  private let cluster: TestCluster

  init() throws { cluster = try TestCluster() }

  @Test("the first leads, the others show what it writes")
  func leaderAndFollowers() async throws {
    let first = try cluster.open("1")
    let second = try cluster.open("2")
    #expect(first.isLeader)
    #expect(second.clusterStatus?.role == .follower)
    let seen = Mutex<[Int]>([])
    second.reference(withPath: "count").observe(.value) { snapshot in
      if let count = snapshot.value as? Int { seen.withLock { $0.append(count) } }
    }
    for count in 1...20 { try await first.reference(withPath: "count").setValue(count) }
    try await eventually("the follower's listener hears the last write") {
      seen.value.last == 20
    }
    #expect(seen.value == seen.value.sorted())
    #expect(try await second.value("count") == 20)
    let status = try #require(second.clusterStatus)
    #expect(status.lsn == 20)
    #expect(status.leader == first.clusterStatus?.server)
    #expect(first.clusterStatus?.undecidedCount == 0)
    #expect((first.clusterStatus?.appendCount ?? 0) > 0)
    try await second.close()
    try await first.close()
  }

  @Test("no server takes over while the leader raises its counter")
  func stays() async throws {
    let adjust = { @Sendable (settings: inout ClusterSettings) in
      settings.takeoverDelay = .seconds(5)
    }
    let first = try cluster.open("1", adjust: adjust)
    let second = try cluster.open("2", adjust: adjust)
    try await first.reference(withPath: "a").setValue(1)
    try await eventually("the second follows") { second.clusterStatus?.lsn == 1 }
    let epoch = first.clusterStatus?.epoch
    func counter() throws -> Int {
      let counter = try cluster.postgres.query(
        "SELECT s.counter FROM dendro.server s JOIN dendro.head h ON s.id = h.leader")
      return try #require(Int(counter))
    }
    // One each tenth of a second.
    let start = try counter()
    try await eventually("the counter moves for longer than the delay") {
      try counter() >= start + 60
    }
    #expect(first.isLeader)
    #expect(second.clusterStatus?.role == .follower)
    #expect(second.clusterStatus?.epoch == epoch)
    try await second.close()
    try await first.close()
  }

  @Test(
    "transactions, increments and updates of the leader are in each copy, after reopening as well")
  func kinds() async throws {
    let first = try cluster.open("1")
    let second = try cluster.open("2")
    let root = first.reference()
    try await root.child("a").setValue(["x": 1, "y": "text"])
    try await root.updateChildValues(["b/c": 2, "a/x": ServerValue.increment(4)])
    let result = try await root.child("b/c").runTransactionBlock { data in
      data.value = ((data.value as? Int) ?? 0) + 40
      return .success(withValue: data)
    }
    #expect(result.1.value as? Int == 42)
    try await root.child("time").setValue(ServerValue.timestamp())
    let whole = first.root
    try await eventually("the follower has all") { second.clusterStatus?.lsn == 4 }
    #expect(second.root == whole)
    try await second.close()
    try await first.close()
    // Nothing but the copies is needed for what was there.
    let again = try cluster.open("2")
    try await eventually("it leads") { again.isLeader }
    #expect(again.root == whole)
    try await again.close()
  }

  @Test(
    "a write at a follower goes to the leader, and its call returns once it shows at the follower",
    arguments: [false, true])
  func forwarded(hasLines: Bool) async throws {
    cluster.hasLines = hasLines
    let first = try cluster.open("1")
    let second = try cluster.open("2")
    try await second.reference(withPath: "a").setValue(["x": 1])
    #expect(try await second.value("a/x") == 1)
    #expect(try await first.value("a/x") == 1)
    let before = Date().addingTimeInterval(-60)
    try await second.reference().updateChildValues([
      "a/x": ServerValue.increment(4), "time": ServerValue.timestamp(), "b": "text",
    ])
    #expect(try await second.value("a/x") == 5)
    let time = try #require(try await second.value("time"))
    #expect(Double(time) / 1000 > before.timeIntervalSince1970)
    // What changes nothing returns as well, and what is refused is refused for its own reason.
    try await second.reference(withPath: "b").setValue("text")
    try await second.reference(withPath: "nothing").removeValue()
    let noData = await #expect(throws: DatabaseError.self) {
      try await second.reference(withPath: "nothing").setPriority(1)
    }
    #expect(noData?.code == .noData)
    // The order of one program is kept, also for writes that are not waited for.
    for number in 1...200 { second.reference(withPath: "n").setValue(number) { _, _ in } }
    try await second.reference(withPath: "last").setValue(true)
    #expect(try await second.value("n") == 200)
    #expect(first.root == second.root)
    try await second.close()
    try await first.close()
  }

  @Test(
    "a follower's writes, also those on their way, are made once when another server takes over",
    arguments: [false, true])
  func forwardedThroughTakeover(hasLines: Bool) async throws {
    cluster.hasLines = hasLines
    let first = try cluster.open("1")
    let second = try cluster.open("2")
    let third = try cluster.open("3")
    try await withThrowingTaskGroup(of: Void.self) { group in
      for database in [second, third] {
        for _ in 0..<4 {
          group.addTask {
            for _ in 0..<50 {
              try await database.reference(withPath: "count").setValue(ServerValue.increment(1))
            }
          }
        }
      }
      try await eventually("some are written") { (first.clusterStatus?.lsn ?? 0) > 40 }
      try await first.close()
      try await group.waitForAll()
    }
    // Either may lead, and have the last write before the other one has it.
    try await eventually("both have all") {
      try third.root == second.root && second.root.child(Key("count")).scalar == .integer(400)
    }
    try await third.close()
    try await second.close()
  }

  @Test("a server that closes leaves the leading to another one at once")
  func drain() async throws {
    let first = try cluster.open("1")
    let second = try cluster.open("2") { $0.takeoverDelay = .seconds(3600) }
    try await first.reference(withPath: "a").setValue(1)
    try await first.close()
    try await eventually("the second one leads") { second.isLeader }
    try await second.reference(withPath: "b").setValue(2)
    #expect(try await second.value("a") == 1)
    let back = try cluster.open("1")
    #expect(!back.isLeader)
    #expect(try await back.value("b") == 2)
    #expect(back.clusterStatus?.epoch == second.clusterStatus?.epoch)
    try await back.close()
    try await second.close()
  }

  @Test("a new server, and one whose directory was removed, get all from PostgreSQL")
  func fromNothing() async throws {
    let first = try cluster.open("1")
    for number in 0..<300 {
      try await first.reference(withPath: "items/\(number)").setValue(
        ["n": number, "text": String(repeating: "x", count: number)])
    }
    let whole = first.root
    let second = try cluster.open("2")
    #expect(second.root == whole)
    try await second.close()
    try FileManager.default.removeItem(atPath: cluster.directory("2"))
    let again = try cluster.open("2")
    #expect(again.root == whole)
    try await again.close()
    try await first.close()
  }

  @Test("namespaces are apart, and so are clusters: a directory of another one is refused")
  func apart() async throws {
    let shop = try cluster.open("1", namespace: "shop")
    let blog = try cluster.open("2", namespace: "blog")
    #expect(shop.isLeader && blog.isLeader)
    try await shop.reference(withPath: "a").setValue(1)
    #expect(try await blog.value("a") == nil)
    try await shop.close()
    try await blog.close()
    let wrong = #expect(throws: DatabaseError.self) { try cluster.open("1", namespace: "blog") }
    #expect(wrong?.code == .invalidArgument)
    let other = try TestCluster()
    cluster.address = other.postgres.address
    let foreign = #expect(throws: DatabaseError.self) { try cluster.open("1") }
    #expect(foreign?.code == .invalidArgument)
    // A database of its own is not taken over.
    try FileManager.default.createDirectory(
      atPath: cluster.directory("3"), withIntermediateDirectories: true)
    let plain = try await Database.open(at: cluster.directory("3") + "/data")
    try await plain.close()
    let own = #expect(throws: DatabaseError.self) { try cluster.open("3") }
    #expect(own?.code == .invalidArgument)
  }

  @Test("bad names and addresses, and a PostgreSQL that is not there, are told")
  func badInput() throws {
    for namespace in ["", String(repeating: "n", count: 257), "a\0b"] {
      let error = #expect(throws: DatabaseError.self) {
        try cluster.open("1", namespace: namespace)
      }
      #expect(error?.code == .invalidArgument)
    }
    for (address, code) in [
      ("postgresql://[::1", DatabaseError.Code.invalidArgument), ("nonsense", .invalidArgument),
      ("postgresql://postgres@127.0.0.1:1/postgres", .unavailable),
      (cluster.postgres.address + "-missing", .unavailable),
    ] {
      cluster.address = address
      let error = #expect(throws: DatabaseError.self) {
        try cluster.open("1", openingLimit: .milliseconds(100))
      }
      #expect(error?.code == code, "\(address): \(String(describing: error))")
    }
  }

  @Test("a database of its own is refused, and nothing is made beside its data")
  func ownDatabase() async throws {
    let own = try await Database.open(at: cluster.directory("1"))
    try await own.reference(withPath: "a").setValue(1)
    try await own.close()
    let names = try FileManager.default.contentsOfDirectory(atPath: cluster.directory("1"))
    let error = #expect(throws: DatabaseError.self) { try cluster.open("1") }
    #expect(error?.code == .invalidArgument)
    #expect(error?.message.contains("is a database of its own") == true)
    let left = try FileManager.default.contentsOfDirectory(atPath: cluster.directory("1"))
    #expect(left.sorted() == names.sorted())
  }

  @Test("a directory is one server's at a time")
  func locked() throws {
    let first = try cluster.open("1")
    let error = #expect(throws: DatabaseError.self) { try cluster.open("1") }
    #expect(error?.code == .locked)
    #expect(first.isLeader)
    try first.close()
  }
}
