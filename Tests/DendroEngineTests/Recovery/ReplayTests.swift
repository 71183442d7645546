import DendroEngine
import DendroStorage
import DendroTesting
import DendroTree
import Synchronization
import DendroTestSupport
import Testing

@Suite("Replaying a log")
struct ReplayTests {
  private func open(_ disk: SimulatedDisk) throws -> Engine {
    var options = EngineOptions.inline
    options.history = .all
    return try Engine.open(at: "/db", options: options, environment: disk.environment)
  }

  /// A tenth of the writes each time, then whatever `pause` does.
  private func write(
    _ disk: SimulatedDisk, seed: UInt64, pause: (Engine, Int) throws -> Void
  ) throws {
    let engine = try open(disk)
    var generator = WriteGenerator(seed: seed)
    for round in 0..<10 {
      for _ in 0..<20 {
        disk.clock.advance(by: 7)
        engine.submit(Draft(generator.write())) { _ in }
        if round % 2 == 0 { engine.pump() }
      }
      engine.pump()
      try pause(engine, round)
    }
    try engine.close()
  }

  private func checkpoints(_ disk: SimulatedDisk) -> [String] {
    disk.names(in: "/db").filter { $0.hasSuffix(".checkpoint") }
  }

  /// What a checkpoint says apart from its salt: its leaves and hash, and its raw chunks.
  private func content(_ disk: SimulatedDisk, _ lsn: LogSequenceNumber) throws -> [[UInt8]] {
    let directory = try DatabaseDirectory.open(
      "/db", environment: disk.environment, mode: .readOnly)
    let reader = try CheckpointReader.open(directory, lsn: lsn)
    var all = [Array("\(reader.leafCount) \(reader.contentHash)".utf8)]
    for chunk in 0..<reader.chunkCount {
      all.append(try reader.readChunk(chunk) { (bytes) throws(StorageError) in Array(bytes) })
    }
    return all
  }

  @Test(
    "the log alone gives the tree whose hash each checkpoint holds, and the live tree had",
    arguments: 0..<6 as Range<UInt64>)
  func replayReachesTheHashOfEachCheckpoint(seed: UInt64) throws {
    let disk = SimulatedDisk(seed: seed)
    var compared = 0
    try write(disk, seed: seed) { engine, _ in
      try engine.checkpoint()
      let (root, lsn) = engine.head
      let directory = try DatabaseDirectory.open(
        "/db", environment: disk.environment, mode: .readOnly)
      let held = try CheckpointReader.open(directory, lsn: lsn).contentHash
      #expect(held == CheckpointCoding.contentHash(of: root))
      let copy = disk.copy()
      for name in checkpoints(copy) { copy.erase("/db/" + name) }
      let replayed = try open(copy)
      #expect(replayed.report.checkpointLSN == nil && replayed.head.lsn == lsn)
      #expect(CheckpointCoding.contentHash(of: replayed.head.root) == held)
      try replayed.head.root.checkInvariants()
      compared += 1
    }
    #expect(compared == 10)
  }

  @Test(
    "two replays of one log give the same bytes, and those of the tree that was live",
    arguments: 0..<6 as Range<UInt64>)
  func twoReplaysGiveTheSameBytes(seed: UInt64) throws {
    let disk = SimulatedDisk(seed: seed)
    var middle: SimulatedDisk?
    try write(disk, seed: seed) { engine, round in
      if round == 4 { try engine.roll() }
      if round == 6 {
        middle = disk.copy()
        try engine.checkpoint()
      }
    }
    // From the beginning, twice, the second time by a clock and a generator that stand elsewhere; and
    // from the checkpoint in the middle.
    let one = disk.copy(seed: 1)
    let two = disk.copy(seed: 2)
    two.clock.set(to: 0)
    let three = disk.copy(seed: 3)
    for copy in [one, two] { for name in checkpoints(copy) { copy.erase("/db/" + name) } }
    var contents: [[[UInt8]]] = []
    for copy in [one, two, three] {
      let engine = try open(copy)
      #expect((engine.report.checkpointLSN == nil) == (contents.count < 2))
      try engine.checkpoint()
      contents.append(try content(copy, engine.head.lsn))
      try engine.close()
    }
    // The same way gives the same pages; another way gives the same tree on other pages.
    #expect(contents[0] == contents[1] && contents[0][0] == contents[2][0])
    // The live tree's own checkpoint, and that of its replay.
    let replayed = try #require(middle)
    let engine = try open(replayed)
    try engine.checkpoint()
    let lsn = engine.head.lsn
    #expect(try content(replayed, lsn)[0] == content(disk, lsn)[0])
    try engine.close()
  }

  @Test("the clock is asked at admission and never in replay: times come from the log")
  func timesAreLogged() throws {
    let disk = SimulatedDisk(seed: 1)
    let engine = try open(disk)
    let stamp = Draft(
      .set(try path("at"), Node(.integer(0))), deferred: [.init(path: .root, value: .timestamp)])
    disk.clock.set(to: 1_800_000_000_000)
    engine.submit(stamp, completion: nil)
    try engine.close()
    let clock = CountingClock()
    var environment = disk.environment
    environment.clock = clock
    let again = try Engine.open(at: "/db", options: .inline, environment: environment)
    #expect(clock.count == 0)
    #expect(try again.view(at: path("at")).scalar == .integer(1_800_000_000_000))
    // Its own clock stands at 1970, and yet no later write is earlier.
    again.submit(stamp, completion: nil)
    again.submit(try set("more", .integer(1)), completion: nil)
    again.pump()
    #expect(try again.view(at: path("at")).scalar == .integer(1_800_000_000_000))
    #expect(clock.count > 0)
    try again.close()
  }

  private final class CountingClock: Clock {
    private let asked = Atomic<Int>(0)
    var count: Int { asked.load(ordering: .relaxed) }
    func now() -> Int64 {
      asked.add(1, ordering: .relaxed)
      return 0
    }
  }
}
