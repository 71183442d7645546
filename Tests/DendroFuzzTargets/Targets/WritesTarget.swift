import DendroEngine
import DendroStorage
import DendroTree
import DendroTestSupport

extension FuzzTarget {
  private static func payload(_ writes: [Write]) -> [UInt8] {
    let timed = writes.enumerated().map { (time: 7 + Int64($0.offset * 5), write: $0.element) }
    return [7, 0] + WriteComparison.encode(timed, baseTime: 7)
  }

  /// A record's payload: two bytes of base time, then the writes.
  static let writes = FuzzTarget(
    "writes", "the writes in a record's payload, and the trees that they make", weight: 200,
    seeds: {
      var seeds: [[UInt8]] = []
      for seed in UInt64(0)..<12 {
        var generator = WriteGenerator(seed: seed)
        let count = 1 + seed % 4
        seeds.append(payload((0..<count).map { _ in generator.write() }))
      }
      // As deep as a path may be, and deeper.
      for depth in [Limits.depth, Limits.depth + 1, 400] {
        let path = Path(keys: Array(repeating: try Key("k"), count: depth))
        seeds.append(payload([.increment(path, .integer(1))]))
      }
      return seeds
    },
    body: { bytes in
      var input = FuzzInput(bytes)
      let baseTime = Int64(input.uint16())
      let payload = UnsafeRawBufferPointer(rebasing: bytes.dropFirst(2))
      let limit = 64
      let (writes, _) = WriteComparison.decode(payload, baseTime: baseTime, limit: limit)
      try WriteComparison.roundTrip(writes, baseTime: baseTime)

      // Replay has a shorter path for leaves; both make the same tree.
      var tree = Node.empty
      var replayed = Node.empty
      var changes: [Change] = []
      var reader = LogV1Reader()
      reader.restart(payload, firstLSN: LogSequenceNumber(1), baseTime: baseTime)
      for logged in writes {
        changes.removeAll()
        tree.apply(logged.write, recording: &changes)
        let applied = attempt { () throws(CodingError) in
          try reader.applyNext(to: &replayed)
        }
        try require(
          applied?.lsn == logged.lsn && applied?.time == logged.time,
          "replay refuses or renumbers \(logged.write)")
      }
      try require(tree == replayed, "replay makes another tree than the writes do")
      if !reader.isAtEnd, writes.count < limit {
        var copy = replayed
        let applied = attempt { () throws(CodingError) in
          try reader.applyNext(to: &copy)
        }
        try require(applied == nil, "replay takes a write that cannot be decoded")
      }
      try WriteComparison.checkInvariants(tree, "the tree")
      try require(tree.height() <= Limits.depth, "the tree is \(tree.height()) levels high")
    })
}
