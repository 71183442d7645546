import Dendro
import Foundation

extension DatabaseOptions {
  /// Options without automatic checkpoints, so that only the log is measured.
  static func withoutCheckpoints(_ durability: Durability) -> DatabaseOptions {
    var options = DatabaseOptions(durability: durability)
    options.checkpointFactor = 0
    return options
  }
}

extension Workload {
  static let sets = Workload(
    name: "sets",
    sentence: "500,000 small sets at posts/<push id>/<field>, buffered, one synchronize at the end."
  ) { session in
    let sets = PostSets(count: session.scaled(500_000))
    var memory: [Double] = []
    var logBytes: [Double] = []
    var contestants = [
      Contestant(name: "dendro", count: sets.count) {
        try await session.withDirectory { url in
          let before = residentByteCount()
          let database = try await Database.open(at: url, options: .withoutCheckpoints(.onRequest))
          let (_, cost) = try await measured { try sets.write(to: database) }
          memory.append(Double(residentByteCount() - before) / Double(sets.count))
          let statistics = database.statistics
          try expect(statistics.lastDurableWrite == UInt64(sets.count), "every set is durable")
          logBytes.append(Double(statistics.logByteCount) / Double(sets.count))
          try await database.close()
          return cost
        }
      }
    ]
    var updateLogBytes: [Double] = []
    contestants.append(
      Contestant(name: "dendro, updates of 1,000 paths", count: sets.count) {
        try await session.withDirectory { url in
          let database = try await Database.open(at: url, options: .withoutCheckpoints(.onRequest))
          let updates = sets.updates(of: 1_000)
          let (_, cost) = try await measured { try write(updates, to: database) }
          updateLogBytes.append(
            Double(database.statistics.logByteCount) / Double(sets.count))
          try await database.close()
          return cost
        }
      })
    contestants.append(
      Contestant(name: "dendro, typed updates of 1,000 paths", count: sets.count) {
        try await session.withDirectory { url in
          let database = try await Database.open(at: url, options: .withoutCheckpoints(.onRequest))
          let (_, cost) = try await measured { try sets.update(database, pathCount: 1_000) }
          try await database.close()
          return cost
        }
      })
    #if canImport(CDendroLevelDB)
      let entries = LevelDBEntries(sets)
      contestants.append(
        Contestant(name: "leveldb", count: sets.count) {
          try await session.withDirectory { url in
            let peer = try LevelDB(at: url)
            defer { peer.close() }
            return try await measured {
              for index in 0..<entries.count {
                try peer.put(entries, index, synchronizing: false)
              }
              try peer.synchronize()
            }.1
          }
        })
    #endif
    try await session.compare("sets", "set", contestants)
    session.record(Figure("sets", "log", "bytes a set", logBytes))
    session.record(Figure("sets", "log of the updates", "bytes a set", updateLogBytes))
    session.record(Figure("sets", "memory, log writer included", "bytes a leaf", memory))
  }

  static let reopen = Workload(
    name: "reopen",
    sentence: "Opening the database that sets writes, by replaying its log."
  ) { session in
    let sets = PostSets(count: session.scaled(500_000))
    let written = session.newDirectory()
    let database = try await Database.open(at: written, options: .withoutCheckpoints(.onRequest))
    try sets.write(to: database)
    try await database.close()
    var contestants = [
      Contestant(name: "dendro", count: sets.count) {
        // Opening may change the files, so each round opens a fresh copy.
        try await session.withCopy(of: written) { url in
          let (database, cost) = try await measured {
            try await Database.open(at: url, options: .withoutCheckpoints(.onRequest))
          }
          let posts = try await database.reference(withPath: "posts").getData()
          try expect(posts.childrenCount == sets.postCount, "every post is back")
          try await database.close()
          return cost
        }
      }
    ]
    #if canImport(CDendroLevelDB)
      let peerWritten = session.newDirectory()
      let entries = LevelDBEntries(sets)
      let peer = try LevelDB(at: peerWritten)
      for index in 0..<entries.count { try peer.put(entries, index, synchronizing: false) }
      try peer.synchronize()
      peer.close()
      contestants.append(
        Contestant(name: "leveldb", count: sets.count) {
          try await session.withCopy(of: peerWritten) { url in
            let (peer, cost) = try await measured { try LevelDB(at: url) }
            defer { peer.close() }
            try expect(try peer.contains(entries, entries.count - 1), "the last set is back")
            return cost
          }
        })
    #endif
    try await session.compare("reopen", "set", contestants)
  }
}

private func write(_ updates: [[String: Any]], to database: Database) throws {
  let root = database.reference()
  for update in updates { root.updateChildValues(update) }
  try database.synchronize()
}

extension PostSets {
  /// The sets as updates of the root.
  func updates(of pathCount: Int) -> [[String: Any]] {
    stride(from: 0, to: count, by: pathCount).map { start in
      var update: [String: Any] = [:]
      for index in start..<min(count, start + pathCount) { update[paths[index]] = values[index] }
      return update
    }
  }

  /// Writes all sets as typed updates, then synchronizes once.
  func update(_ database: Database, pathCount: Int) throws {
    let root = database.reference()
    for start in stride(from: 0, to: count, by: pathCount) {
      root.update { update in
        for index in start..<min(count, start + pathCount) {
          update.set(paths[index], values[index])
        }
      }
    }
    try database.synchronize()
  }

  /// Writes all sets through the public API, then synchronizes once.
  func write(to database: Database) throws {
    let root = database.reference()
    for index in 0..<count { root.child(paths[index]).setValue(values[index]) }
    try database.synchronize()
  }
}

extension Session {
  /// Runs `body` with a copy of a directory, which is removed afterwards.
  func withCopy<R>(of url: URL, _ body: (URL) async throws -> R) async throws -> R {
    try await withDirectory { copy in
      try FileManager.default.copyItem(at: url, to: copy)
      return try await body(copy)
    }
  }
}
