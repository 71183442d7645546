import Dendro
import Foundation

extension Workload {
  private static let writerCount = 64

  static let durable = Workload(
    name: "durable",
    sentence:
      "64 concurrent writers, each of which awaits every small set until it is durable; then one writer."
  ) { session in
    let sets = PostSets(count: session.scaled(64_000))
    var writesPerSynchronize: [Double] = []
    var contestants = [
      Contestant(name: "dendro, 64 tasks", count: sets.count) {
        try await session.withDirectory { url in
          let database = try await Database.open(
            at: url, options: .withoutCheckpoints(.everyCommit))
          let root = database.reference()
          let (_, cost) = try await measured {
            try await withThrowingTaskGroup(of: Void.self) { group in
              for writer in 0..<writerCount {
                group.addTask {
                  for index in stride(from: writer, to: sets.count, by: writerCount) {
                    try await root.child(sets.paths[index]).setValue(sets.values[index])
                  }
                }
              }
              try await group.waitForAll()
            }
          }
          let statistics = database.statistics
          try expect(statistics.lastDurableWrite == UInt64(sets.count), "every set is durable")
          writesPerSynchronize.append(
            Double(sets.count) / Double(max(1, statistics.synchronizeCount)))
          try await database.close()
          return cost
        }
      }
    ]
    #if canImport(CDendroLevelDB)
      let entries = LevelDBEntries(sets)
      contestants.append(
        Contestant(name: "leveldb, 64 threads", count: sets.count) {
          try await session.withDirectory { url in
            let peer = try LevelDB(at: url)
            defer { peer.close() }
            return try await measured {
              try inThreads(writerCount) { writer in
                for index in stride(from: writer, to: entries.count, by: writerCount) {
                  try peer.put(entries, index, synchronizing: true)
                }
              }
            }.1
          }
        })
    #endif
    try await session.compare("durable", "set", contestants)
    session.record(
      Figure("durable", "dendro, sets a synchronize", "sets", writesPerSynchronize))

    // One task awaits each set, so that each is in a record of its own.
    let aloneCount = session.scaled(4_000)
    var alone: [Double] = []
    var logBytes: [Double] = []
    for _ in 0..<session.rounds {
      try await session.withDirectory { url in
        let database = try await Database.open(at: url, options: .withoutCheckpoints(.everyCommit))
        let root = database.reference()
        alone.append(
          Double(aloneCount)
            / (try await seconds {
              for index in 0..<aloneCount {
                try await root.child(sets.paths[index]).setValue(sets.values[index])
              }
            }))
        logBytes.append(Double(database.statistics.logByteCount) / Double(aloneCount))
        try await database.close()
      }
    }
    session.record(Figure("durable", "dendro, one task", "sets a second", alone))
    session.record(Figure("durable", "log, one set a record", "bytes a set", logBytes))
  }
}
