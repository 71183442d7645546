import DendroEngine
import DendroStorage
import Testing

@testable import DendroCluster

@Suite("The chain of the shared log")
struct LogChainTests {
  private let cluster = ClusterID(bytes: Array(0..<16))

  private func chain(
    _ start: LogChain, lsn: UInt64 = 1, count: Int = 1, time: Int64 = 5, _ payload: [UInt8] = [1]
  ) -> LogChain {
    payload.withUnsafeBytes { payload in
      start.appending(
        SharedRecord(
          firstLSN: LogSequenceNumber(lsn), count: count, baseTime: time, payload: payload))
    }
  }

  @Test("it differs with the cluster, the namespace, and each field of each record")
  func differs() throws {
    let cluster = try #require(cluster)
    let other = try #require(ClusterID(bytes: Array(1..<17)))
    let start = LogChain(of: cluster, "a")
    let chains = [
      start, LogChain(of: cluster, "b"), LogChain(of: other, "a"), chain(start),
      chain(start, lsn: 2), chain(start, count: 2), chain(start, time: 6), chain(start, [2]),
      chain(chain(start)),
    ]
    #expect(Set(chains).count == chains.count)
    #expect(chain(start) == chain(LogChain(of: cluster, "a")))
  }

  @Test("the directories of two namespaces, or of two clusters, have different names")
  func databaseIDs() throws {
    let cluster = try #require(cluster)
    let other = try #require(ClusterID(bytes: Array(1..<17)))
    #expect(cluster.databaseID(of: "a") == cluster.databaseID(of: "a"))
    #expect(cluster.databaseID(of: "a") != cluster.databaseID(of: "b"))
    #expect(cluster.databaseID(of: "a") != other.databaseID(of: "a"))
  }
}
