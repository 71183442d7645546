import Dendro
import DendroEngine
import DendroStorage
import DendroTestSupport
import Foundation
import Synchronization
import Testing

@testable import DendroCluster

@Suite(
  "Servers with lines over one PostgreSQL",
  .enabled(if: PostgresServer.isInstalled, "needs PostgreSQL"))
struct LineClusterTests {
  private let cluster: TestCluster

  init() throws {
    cluster = try TestCluster()
    cluster.hasLines = true
  }

  private func hasLine(_ database: Database) -> Bool {
    (database.clusterStatus?.lineCount ?? 0) > 0
  }

  /// How many rows were ever left in a table.
  private func rowCount(_ table: String) throws -> Int {
    Int(
      try cluster.postgres.query(
        """
        SELECT pg_stat_get_tuples_inserted('dendro.\(table)'::regclass)
          + pg_stat_get_xact_tuples_inserted('dendro.\(table)'::regclass)
        """)) ?? -1
  }

  @Test("what a follower writes, and what it hears, comes over the line")
  func noTables() async throws {
    let first = try cluster.open("1")
    // It looks at PostgreSQL once an hour.
    let second = try cluster.open("2") {
      $0.lineLookInterval = .seconds(3600)
      $0.beatInterval = .milliseconds(100)
    }
    try await eventually("there is a line") { hasLine(second) }
    #expect(first.clusterStatus?.lineCount == 1)
    for number in 1...100 {
      try await second.reference(withPath: "n").setValue(number)
      #expect(try await first.value("n") == number)
      try await first.reference(withPath: "m").setValue(number)
      try await eventually("the follower has it") {
        second.clusterStatus?.lsn == first.clusterStatus?.lsn
      }
      #expect(try await second.value("m") == number)
    }
    // What changes nothing is answered as well.
    try await second.reference(withPath: "n").setValue(100)
    let noData = await #expect(throws: DatabaseError.self) {
      try await second.reference(withPath: "nothing").setPriority(1)
    }
    #expect(noData?.code == .noData)
    try await second.close()
    try await first.close()
    try await eventually("PostgreSQL has counted") { try rowCount("server") > 0 }
    #expect(try rowCount("request") == 0)
    #expect(try rowCount("answer") == 0)
    // Nobody is called who is not there.
    #expect(try cluster.postgres.query("SELECT count(*) FROM dendro.line") == "0")
  }

  @Test("a program that has lines takes those of others, for all of its namespaces")
  func programs() async throws {
    let lines = try ServerLines(listeningAt: "127.0.0.1")
    let (directory, address) = (cluster.folder.path, cluster.postgres.address)
    for namespace in ["shop", "stock"] {
      let first = try await Database.open(
        at: directory + "/1" + namespace, replicatedBy: address, namespace: namespace,
        lines: lines)
      let second = try await Database.open(
        at: directory + "/2" + namespace, replicatedBy: address, namespace: namespace)
      try await eventually("there is a line") { hasLine(second) }
      #expect(first.isLeader && first.clusterStatus?.lineCount == 1)
      try await second.reference(withPath: "n").setValue(1)
      #expect(try await first.value("n") == 1)
      try await second.close()
      try await first.close()
    }
    let nowhere = #expect(throws: DatabaseError.self) { try ServerLines(listeningAt: "0.0.0.0") }
    #expect(nowhere?.code == .invalidArgument)
    let taken = try #require(lines.address?.port)
    let error = #expect(throws: DatabaseError.self) {
      try ServerLines(listeningAt: "127.0.0.1", port: taken)
    }
    #expect(error?.code == .inputOutput)
    #expect(error?.message.contains("127.0.0.1") == true, "\(error?.message ?? "")")
  }

  @Test("servers of a schema that has no table for lines do without them")
  func missingTable() async throws {
    let first = try cluster.open("1")
    let second = try cluster.open("2")
    _ = try cluster.postgres.query("DROP TABLE dendro.line")
    second.node?.leaderLine?.close()
    try await second.reference(withPath: "a").setValue(1)
    try await second.close()
    try await first.close()
    // The next one makes it.
    let again = try cluster.open("1")
    #expect(try await again.value("a") == 1)
    #expect(try cluster.postgres.query("SELECT count(*) FROM dendro.line") == "1")
    try await again.close()
  }

  @Test("writes on their way when lines end are made once, whichever way they go then")
  func cutLines() async throws {
    let first = try cluster.open("1")
    let followers = [try cluster.open("2"), try cluster.open("3")]
    let isEnded = Flag()
    let count = try await withThrowingTaskGroup(of: Int.self) { group in
      for number in 0..<12 {
        group.addTask {
          let database = followers[number % 2]
          var count = 0
          while !isEnded.isSet {
            try await database.reference(withPath: "count").setValue(ServerValue.increment(1))
            // Answered without the log.
            try await database.reference(withPath: "same").setValue(1)
            count += 1
          }
          return count
        }
      }
      for cut in 0..<60 {
        try await eventually("there is a line") { hasLine(followers[cut % 2]) }
        let lsn = first.clusterStatus?.lsn ?? 0
        try await eventually("some are written") { (first.clusterStatus?.lsn ?? 0) > lsn + 20 }
        if cut % 3 == 0 {
          first.node?.requests?.closeLines()
        } else {
          followers[cut % 2].node?.leaderLine?.close()
        }
      }
      isEnded.set()
      return try await group.reduce(0, +)
    }
    #expect(try await first.value("count") == count)
    for follower in followers {
      try await eventually("the follower has all") { follower.root == first.root }
      try await follower.close()
    }
    try await first.close()
  }
}
