import DendroStorage
import DendroTestSupport
import DendroTesting
import DendroTree
import Testing

@testable import DendroEngine

/// What a quick check reads: the bytes that an opening depends on, without the tree that they make.
@Suite("Rehearsal of an opening")
struct RehearsalTests {
  /// Two checkpoints of several chunks each, and the log since the first.
  private static func database() throws -> (disk: SimulatedDisk, last: LogSequenceNumber) {
    let disk = SimulatedDisk(seed: 1)
    let engine = try LoadingTests.open(disk)
    for round in 0..<3 {
      for number in 0..<60 {
        engine.submit(
          try set("k\(number % 12)/n\(number)", .string("\(round) \(number)")), completion: nil)
      }
      engine.pump()
      if round < 2 { try engine.checkpoint() }
    }
    let last = engine.head.lsn
    try engine.close()
    return (disk, last)
  }

  private static func reading<R>(
    _ disk: SimulatedDisk, _ body: (DatabaseDirectory) throws -> R
  ) throws -> R {
    let directory = try DatabaseDirectory.open(
      "/db", environment: disk.environment, mode: .readOnly)
    defer { directory.close() }
    return try body(directory)
  }

  @Test("a damaged chunk is found by its checksum, with the error that decoding throws")
  func chunks() throws {
    let (disk, _) = try Self.database()
    try Self.reading(disk) { directory in
      let newest = try #require(try directory.contents().checkpoints.max())
      let good = try CheckpointReader.open(directory, lsn: newest)
      let progress = Received<RecoveryProgress>()
      try CheckpointCoding.checkChunks(good) { progress.add($0) }
      #expect(progress.all.last?.completedByteCount == good.rawByteCount)
      #expect(progress.all.allSatisfy { $0.totalByteCount == good.rawByteCount })
      for chunk in 0..<good.chunkCount {
        let damaged = disk.copy()
        damaged.flipBit(Int(good.offset(ofChunk: chunk) + 40) * 8, of: good.path)
        try Self.reading(damaged) { directory in
          let reader = try CheckpointReader.open(directory, lsn: newest)
          let quick = #expect(throws: StorageError.self) {
            try CheckpointCoding.checkChunks(reader) { _ in }
          }
          let decoded = #expect(throws: StorageError.self) { try CheckpointCoding.decode(reader) }
          #expect(quick == decoded, "chunk \(chunk)")
        }
      }
      good.close()
      #expect {
        try CheckpointCoding.checkChunks(good) { _ in }
      } throws: { error in
        guard case StorageError.io("read", good.path, _, .closed) = error else { return false }
        return true
      }
    }
  }

  @Test("the log is read from the newest checkpoint of which nothing bad is known")
  func checkpoints() throws {
    let (disk, last) = try Self.database()
    try Self.reading(disk) { directory in
      let all = try directory.contents().checkpoints.sorted()
      try #require(all.count == 2)
      let error = StorageError.corrupt(
        path: "/db/one", offset: 3, expected: "good", found: "bad")
      for known in [[], [all[1]]] {
        let errors = Dictionary(uniqueKeysWithValues: known.map { ($0, error) })
        #expect(try Engine.rehearseOpening(of: directory, checkpointErrors: errors) == last)
      }
      // The log begins behind the first write.
      let errors = Dictionary(uniqueKeysWithValues: all.map { ($0, error) })
      #expect(throws: error) {
        try Engine.rehearseOpening(of: directory, checkpointErrors: errors)
      }
    }
  }

  /// What an opening finds if a chunk of the newest checkpoint is damaged that the log behind it needs.
  @Test("a chunk that the last record needs is not read; the older checkpoint and the log serve")
  func neededPages() throws {
    for count in [1, 2, 9] {
      let disk = SimulatedDisk(seed: 1)
      // New siblings, which are put into their page together.
      let root = try LoadingTests.database(disk, behind: (0..<count).map { "o15/new\($0)" })
      let (path, offsets) = try Self.reading(disk) { directory in
        let newest = try #require(try directory.contents().checkpoints.max())
        let reader = try CheckpointReader.open(directory, lsn: newest)
        return (reader.path, (0..<reader.chunkCount).map { reader.offset(ofChunk: $0) })
      }
      var passedOver = 0
      for offset in offsets {
        let damaged = disk.copy()
        damaged.flipBit(Int(offset + 40) * 8, of: path)
        let again = try LoadingTests.open(damaged)
        #expect(again.head.lsn.rawValue == UInt64(600 + count))
        if again.report.unreadableCheckpoints.isEmpty {
          // Its pages are asked for later, and refused.
          #expect(throws: EngineError.self) { try again.wholeHead() }
        } else {
          passedOver += 1
          #expect(try again.wholeHead().root == root)
        }
        try again.close()
      }
      #expect(passedOver > 0 && passedOver < offsets.count)
    }
  }
}
