import Dendro
import DendroTesting
import Foundation
import Synchronization

extension Workload {
  static let reads = Workload(
    "reads", row: "W6",
    """
    400,000 leaves read at random, of posts of five fields; 100,000 objects of six fields; and leaves read \
    by one thread and by two, beside a writer that sets a leaf every millisecond, and by one beside a writer \
    at full speed, of the same database and of another one.
    """,
    [
      Comparison(
        "leaf", "leaves",
        [
          dendroLeaf("a view for each") { database, paths in
            var byteCount = 0
            for path in paths {
              byteCount += try database.read { try $0.string(at: path)?.utf8.count ?? 0 }
            }
            return byteCount
          },
          dendroLeaf("all in one view") { database, paths in
            try database.read { view in
              var byteCount = 0
              for path in paths { byteCount += try view.string(at: path)?.utf8.count ?? 0 }
              return byteCount
            }
          },
          dendroLeaf("in one snapshot") { database, paths in
            let snapshot = try await database.reference().getData()
            var byteCount = 0
            for path in paths { byteCount += snapshot[path].string?.utf8.count ?? 0 }
            return byteCount
          },
          dendroLeaf("getData for each") { database, paths in
            let root = database.reference()
            var byteCount = 0
            for path in paths {
              byteCount += try await root.child(path).getData().string?.utf8.count ?? 0
            }
            return byteCount
          },
        ] + PeerReads.leaf),
      Comparison("object of six fields", "objects", ObjectReads.dendro + PeerReads.object),
      Comparison(
        "leaf, beside a writer", "leaves",
        [
          besideWriter(1, "a view for each, 1 reader"),
          besideWriter(2, "a view for each, 2 readers"),
        ] + PeerReads.besideWriter),
      ReadsBesideWriter.comparison,
    ])

  private static func dendroLeaf(
    _ name: String, _ read: @escaping @Sendable (Database, [String]) async throws -> Int
  ) -> Contestant {
    Contestant("dendro, \(name)") { turn in
      let input = LeafReads(turn)
      return try await turn.withDatabase { database in
        try input.sets.write(to: database)
        var byteCount = 0
        let paths = input.order.map { input.sets.paths[$0] }
        let measurement = try await Measurement.awaiting(paths.count) {
          byteCount = try await read(database, paths)
        }
        try expect(byteCount == 20 * paths.count, "every leaf is read")
        return measurement
      }
    }
  }

  private static func besideWriter(_ readerCount: Int, _ name: String) -> Contestant {
    Contestant("dendro, \(name)") { turn in
      let input = LeafReads(turn)
      return try await turn.withDatabase { database in
        try input.sets.write(to: database)
        let paths = input.order.map { input.sets.paths[$0] }
        let root = database.reference()
        return try input.measure(
          readerCount: readerCount,
          write: { root.child(input.sets.paths[$0]).setValue(input.sets.values[$0]) },
          read: {
            var byteCount = 0
            for path in paths {
              byteCount += try database.read { try $0.string(at: path)?.utf8.count ?? 0 }
            }
            return byteCount
          })
      }
    }
  }
}

/// Which leaves are read, in which order.
struct LeafReads: Sendable {
  let sets: PostSets
  let order: [Int]

  init(_ turn: Turn) {
    let sets = PostSets(count: turn.scaled(400_000))
    var generator = SeededRandomness(seed: 10)
    order = (0..<turn.scaled(400_000)).map { _ in Int.random(in: 0..<sets.count, using: &generator)
    }
    self.sets = sets
  }

  /// Each reader reads all leaves, while another thread writes one every millisecond.
  ///
  /// - Parameter read: reads all of them, and returns the sum of their bytes.
  func measure(
    readerCount: Int, write: @escaping @Sendable (Int) throws -> Void,
    read: @escaping @Sendable () throws -> Int
  ) throws -> Measurement {
    let isOver = Atomic<Bool>(false)
    let byteCount = Atomic<Int>(0)
    let finishedCount = Atomic<Int>(0)
    let measurement = try Measurement.blocking(readerCount * order.count) {
      try runInThreads(readerCount + 1) { thread in
        if thread == readerCount {
          var index = 0
          while !isOver.load(ordering: .relaxed) {
            try write(order[index % order.count])
            index += 1
            usleep(1_000)
          }
        } else {
          defer {
            if finishedCount.add(1, ordering: .relaxed).newValue == readerCount {
              isOver.store(true, ordering: .relaxed)
            }
          }
          byteCount.add(try read(), ordering: .relaxed)
        }
      }
    }
    try expect(
      byteCount.load(ordering: .relaxed) == 20 * readerCount * order.count, "every leaf is read")
    return measurement
  }
}
