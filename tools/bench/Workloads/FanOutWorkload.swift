import Dendro
import Foundation

extension Workload {
  static let fanOut = Workload(
    "fan-out", row: "W3",
    """
    100,000 atomic commits, buffered, one synchronize at the end: each writes a post of about 200 bytes at \
    two paths, and increments the stars of an earlier post at two paths.
    """,
    [
      Comparison(
        "commits", "commits",
        [
          dendro("updateChildValues") { commits in
            { root, index in root.updateChildValues(commits.update(index)) }
          },
          dendro("updateChildValues, dictionaries made before") { commits in
            nonisolated(unsafe) let updates = (0..<commits.count).map { commits.update($0) }
            return { root, index in root.updateChildValues(updates[index]) }
          },
          dendro("updateChildValues, Database.Value made before") { commits in
            nonisolated(unsafe) let updates = (0..<commits.count).map { commits.typedUpdate($0) }
            return { root, index in root.updateChildValues(updates[index]) }
          },
          dendro("update { $0.set(path, String) }") { commits in
            { root, index in
              let post = commits.posts[index + 1]
              root.update { update in
                for path in post.paths {
                  update.set("\(path)/uid", post.userID)
                  update.set("\(path)/author", post.author)
                  update.set("\(path)/title", post.title)
                  update.set("\(path)/body", post.body)
                }
                for path in commits.posts[post.starred].counterPaths {
                  update.increment(path, by: 1)
                }
              }
            }
          },
          peer(.levelDB), peer(.rocksDB), lmdb, redis("100 transactions in flight", 100),
          redis("one transaction at a time", 1),
        ])
    ])

  private typealias Write = (DatabaseReference, Int) -> Void

  private static func commits(_ turn: Turn) -> BlogCommits {
    BlogCommits(count: turn.scaled(100_000))
  }

  private static func dendro(
    _ name: String, _ write: @escaping @Sendable (BlogCommits) -> Write
  ) -> Contestant {
    Contestant("dendro, \(name)") { turn in
      let commits = commits(turn)
      return try await turn.withDatabase { database in
        let root = database.reference()
        try commits.writeFirstPost(to: database)
        let write = write(commits)
        let measurement = try Measurement.blocking(commits.count) {
          for index in 0..<commits.count { write(root, index) }
          try database.synchronize()
        }
        let statistics = database.statistics
        try expect(statistics.lastDurableWrite == UInt64(commits.count) + 1, "all is durable")
        try commits.expectAll(in: database)
        return measurement.adding(
          "log", "bytes a commit", Double(statistics.logByteCount) / Double(commits.count))
      }
    }
  }

  /// Reads both counters, and writes four values in one batch.
  private static func peer(_ kind: PeerKind) -> Contestant? {
    .peer(kind, "get and batch") { turn, peer in
      let commits = commits(turn)
      let entries = BlogEntries(commits)
      let measurement = try Measurement.blocking(commits.count, peer) {
        for index in 0..<commits.count {
          let starred = commits.posts[index + 1].starred
          let stars = [
            try peer.number(at: entries.counter(starred, 0)) + 1,
            try peer.number(at: entries.counter(starred, 1)) + 1,
          ]
          try peer.batch { put in
            for place in 0..<2 {
              try put(entries.post(index + 1, place), entries.json(index + 1))
              try StoredNumber(stars[place]).withBytes {
                try put(entries.counter(starred, place), $0)
              }
            }
          }
        }
        try peer.synchronize()
      }
      var total = 0
      for post in commits.posts.indices {
        total += Int(try peer.number(at: entries.counter(post, 1)))
      }
      try expect(total == commits.count, "every commit shows")
      return measurement
    }
  }

  /// Reads and writes in one transaction.
  private static var lmdb: Contestant? {
    #if canImport(CDendroLMDB)
      .lmdb("one transaction") { turn, lmdb in
        let commits = commits(turn)
        let entries = BlogEntries(commits)
        let measurement = try Measurement.blocking(commits.count) {
          for index in 0..<commits.count {
            let starred = commits.posts[index + 1].starred
            try lmdb.write { transaction throws(PeerError) in
              for place in 0..<2 {
                try LMDB.put(
                  entries.post(index + 1, place), entries.json(index + 1), in: lmdb.entries,
                  transaction)
                let counter = entries.counter(starred, place)
                var stars = StoredNumber(try LMDB.get(counter, in: lmdb.entries, transaction))
                stars.value += 1
                try stars.withBytes { bytes throws(PeerError) in
                  try LMDB.put(counter, bytes, in: lmdb.entries, transaction)
                }
              }
            }
          }
          try lmdb.synchronize()
        }
        var total = 0
        for post in commits.posts.indices {
          total += Int(try lmdb.number(at: entries.counter(post, 1)))
        }
        try expect(total == commits.count, "every commit shows")
        return measurement
      }
    #else
      nil
    #endif
  }

  private static func redis(_ details: String, _ inFlight: Int) -> Contestant? {
    #if canImport(CDendroRedis)
      .redis(details) { turn, redis in
        let commits = BlogCommits(count: turn.scaled(inFlight == 1 ? 20_000 : 100_000))
        let entries = BlogEntries(commits)
        let connection = redis.connection
        // A transaction has six commands.
        let limit = (inFlight - 1) * 6
        let measurement = try Measurement.blocking(commits.count, redis) {
          for index in 0..<commits.count {
            let starred = commits.posts[index + 1].starred
            try connection.append(RedisWord.multi.bytes)
            for place in 0..<2 {
              try connection.append(
                RedisWord.set.bytes, entries.post(index + 1, place), entries.json(index + 1))
              try connection.append(RedisWord.increment.bytes, entries.counter(starred, place))
            }
            try connection.append(RedisWord.exec.bytes)
            try connection.drain(to: limit)
          }
          try connection.drain()
          try redis.synchronize()
        }
        var total = 0
        for post in commits.posts.indices {
          try redis.get(entries.counter(post, 1)) { total += $0.flatMap { Int(text: $0) } ?? 0 }
        }
        try expect(total == commits.count, "every commit shows")
        return measurement
      }
    #else
      nil
    #endif
  }
}

/// The keys and values of the commits, as peers get them.
private struct BlogEntries: Sendable {
  private let posts: Entries
  private let counters: Entries

  init(_ commits: BlogCommits) {
    posts = Entries(
      keys: commits.posts.flatMap(\.paths), values: commits.posts.flatMap { [$0.json, ""] })
    let paths = commits.posts.flatMap(\.counterPaths)
    counters = Entries(keys: paths, values: paths.map { _ in "" })
  }

  func post(_ index: Int, _ place: Int) -> Bytes { posts.key(index * 2 + place) }
  func json(_ index: Int) -> Bytes { posts.value(index * 2) }
  func counter(_ index: Int, _ place: Int) -> Bytes { counters.key(index * 2 + place) }
}

extension Int {
  /// A number as Redis keeps it.
  init?(text: Bytes) { self.init(String(decoding: text, as: UTF8.self)) }
}
