import Dendro
import DendroTestSupport
import Foundation
import Synchronization
import Testing

/// Clients of a server of its own process, which is killed over and over.
@Suite("synced databases: killed servers")
struct KilledServerTests {
  @Test(
    "no acknowledged write is lost, transactions count once, and in the end all see the same",
    arguments: 1...UInt64(Scale.ofProcesses(20)))
  func kills(seed: UInt64) async throws {
    var generator = SeededGenerator(seed: seed)
    let folder = try TemporaryFolder()
    var server = try ServerProcess(folder.path + "/db")
    let proxy = try LineCutter(to: server.port)
    defer { withExtendedLifetime(proxy) {} }
    let databases = (0..<4).map { _ in synced(proxy.port) }
    let viewers = databases.map { Viewer($0) }
    let acknowledged = Mutex<[Int: Int]>([:])
    let startedCount = Mutex(0)
    let counted = Mutex(0)
    let failures = Mutex<[String]>([])
    for (database, viewer) in zip(databases, viewers) {
      viewer.listen("all", database.reference(withPath: "shared"))
      viewer.listen(
        "last", database.reference(withPath: "shared").queryOrderedByKey().queryLimited(toLast: 2))
    }
    for round in 0..<60 {
      for (index, database) in databases.enumerated() {
        let shared = database.reference(withPath: "shared")
        shared.child("c\(index)").setValue(round) { error, _ in
          if error == nil { acknowledged.withLock { $0[index] = max($0[index] ?? 0, round) } }
        }
        switch generator.below(4) {
        case 0: shared.child("any/k\(generator.below(9))").withoutWaiting { $0.removeValue() }
        case 1:
          shared.withoutWaiting { ref in
            ref.updateChildValues(["any/k1": round, "any/k\(2 + index)/x": ["y": round]])
          }
        case 2:
          startedCount.withLock { $0 += 1 }
          database.reference(withPath: "count").runTransactionBlock({ data in
            data.value = (data.value as? Int ?? 0) + 1
            return .success(withValue: data)
          }) { error, committed, _ in
            if committed { counted.withLock { $0 += 1 } }
            if let error { failures.withLock { $0.append("\(error)") } }
          }
        default: break
        }
      }
      if round % 20 == 10 {
        server.kill()
        server = try ServerProcess(folder.path + "/db")
        proxy.lead(to: server.port)
        for database in databases where generator.oneIn(2) { database.goOnline() }
      }
    }
    for database in databases {
      database.goOnline()
      try await database.waitForPendingWrites()
    }
    try await eventually {
      counted.value + failures.value.count == startedCount.value
    }
    let judge = synced(proxy.port)
    let there = try await judge.reference(withPath: "shared").getData().node
    let total = try await judge.reference(withPath: "count").getData().value as? Int ?? 0
    #expect(total == counted.value, "seed \(seed)")
    #expect(failures.value == [], "seed \(seed)")
    for (index, database) in databases.enumerated() {
      let own = try await judge.reference(withPath: "shared/c\(index)").getData().value as? Int
      #expect(own == acknowledged.withLock { $0[index] }, "seed \(seed)")
      try await eventually {
        try await database.reference(withPath: "shared").getData().node == there
      }
      #expect(await viewers[index].take()["all"]?.last == .value(there), "seed \(seed)")
      try await database.close()
    }
    try await judge.close()
    #expect(server.stop() == 0)
  }
}
