import DendroEngine
import DendroPlatform
import DendroStorage
import DendroTesting
import DendroTree
import Testing

@Suite("A checkpoint that meets with trouble")
struct CheckpointFaultTests {
  let disk = SimulatedDisk(seed: 1)

  private func open(_ disk: SimulatedDisk) throws -> Engine {
    try Engine.open(at: "/db", options: .inline, environment: disk.environment)
  }

  private func names(_ disk: SimulatedDisk, _ suffix: String) -> [String] {
    disk.names(in: "/db").filter { $0.hasSuffix(suffix) }
  }

  @Test("no room for a checkpoint: the older one and the log stay, and it works once there is room")
  func noRoomForACheckpoint() throws {
    let engine = try open(disk)
    engine.submit(try set("a", .string(incompressible(5_000))), completion: nil)
    engine.pump()
    try engine.checkpoint()
    let older = names(disk, ".checkpoint")
    // Each call on the new file finds the disk full, until none is left to fail.
    var number = 1
    while true {
      engine.submit(try set("b", .integer(Int64(number))), completion: nil)
      engine.pump()
      disk.inject(
        DiskFault(
          .error(SystemError.noSpace.code), of: [.create, .write, .synchronize, .rename],
          at: number, isPermanent: true, pathPart: ".checkpoint"))
      var failure: EngineError?
      do throws(EngineError) {
        try engine.checkpoint()
      } catch {
        failure = error
      }
      disk.removeFaults()
      guard let failure else { break }
      guard case .storage(.io(_, _, _, .noSpace)) = failure else {
        Issue.record("call \(number): \(failure)")
        return
      }
      #expect(names(disk, ".checkpoint") == older && names(disk, ".tmp").isEmpty, "call \(number)")
      let point = disk.crashPoint()
      let crashed = try open(point.disk(point.allDropped))
      #expect(crashed.head.root == engine.head.root, "call \(number)")
      #expect(crashed.report.checkpointLSN == LogSequenceNumber(1), "call \(number)")
      number += 1
    }
    #expect(number > 5)
    engine.submit(try set("c", .integer(1)), completion: nil)
    engine.pump()
    #expect(try engine.view(at: path("c")).scalar == .integer(1))
    try engine.checkpoint()
    #expect(names(disk, ".checkpoint").count == 2)
    let root = engine.head.root
    try engine.close()
    #expect(try open(disk).head.root == root)
  }

  @Test(
    "a crash while old files are removed: remaining files do no harm and are removed the next time")
  func crashInTheCleanup() throws {
    let engine = try open(disk)
    for round in 0..<3 {
      for part in 0..<3 {
        engine.submit(try set("k\(round)/\(part)", .integer(Int64(round))), completion: nil)
        engine.pump()
        try engine.roll()
      }
      try engine.checkpoint()
    }
    engine.submit(try set("after", .bool(true)), completion: nil)
    engine.pump()
    let before = disk.operationCount
    let (root, lsn) = engine.head
    try engine.checkpoint()
    let trace = disk.trace[before...]
    let removals = trace.filter { $0.kind == .remove && !$0.path.hasSuffix(".tmp") }
    #expect(removals.count >= 4)
    try engine.close()
    var states = 0
    for point in disk.crashPoints() where point.operationCount > before {
      try point.forEachState { state in
        states += 1
        let crashed = point.disk(state)
        let recovered = try open(crashed)
        #expect(recovered.head.root == root && recovered.head.lsn == lsn, "\(state)")
        #expect(recovered.report.unreadableCheckpoints.isEmpty, "\(state)")
        // Nor does a verification of all files report it as damage.
        let directory = try DatabaseDirectory.open(
          "/db", environment: crashed.environment, mode: .readOnly)
        let cursor = LogCursor(directory)
        while try cursor.step({ item in
          if case .problem(let problem) = item, !problem.isTail {
            Issue.record("\(state): \(problem)")
          }
        }) {}
        directory.close()
        guard states % 8 == 0 else { return }
        for index in 0..<2 {
          recovered.submit(try set("more/\(index)", .integer(1)), completion: nil)
          recovered.pump()
          try recovered.checkpoint()
        }
        try recovered.close()
        #expect(names(crashed, ".checkpoint").count == 2, "\(state)")
        #expect(names(crashed, ".log").count == 2, "\(state)")
      }
    }
    #expect(states > 100)
  }

  @Test("without a file descriptor there is no checkpoint, and writes go on")
  func noDescriptor() throws {
    let disk = SimulatedDisk(seed: 1)
    let engine = try LoadingTests.open(disk)
    engine.submit(try set("other", .integer(7)), completion: nil)
    engine.pump()
    disk.inject(DiskFault(.error(24), of: [.open], at: 1, isPermanent: true))
    #expect(throws: EngineError.self) { try engine.checkpoint() }
    let results = Received<Bool>()
    engine.submit(try set("other", .integer(8))) { result in
      if case .success = result { results.add(true) }
    }
    engine.pump()
    #expect(results.all == [true])
    disk.removeFaults()
    try engine.checkpoint()
    try engine.close()
  }

  @Test("a checkpoint whose name may not be durable does not count: an older one is kept for it")
  func doubtfulName() throws {
    for history in [HistoryRetention.none, .writes(1)] {
      let disk = SimulatedDisk(seed: 1)
      var options = EngineOptions.inline
      options.history = history
      let engine = try Engine.open(at: "/db", options: options, environment: disk.environment)
      func take(_ number: Int64) throws {
        engine.submit(try set("n\(number)", .integer(number)), completion: nil)
        engine.pump()
        try engine.checkpoint()
      }
      try take(1)
      try take(2)
      // The first is that of the segment which begins behind the checkpoint.
      disk.inject(.failure(of: .synchronizeDirectory, at: 2, with: EIO))
      #expect(throws: EngineError.self) { try take(3) }
      disk.removeFaults()
      #expect(names(disk, ".checkpoint").contains("00000000000000000003.checkpoint"))
      try take(4)
      // A power loss may take the third one, and damage the newest.
      #expect(names(disk, ".checkpoint").contains("00000000000000000002.checkpoint"), "\(history)")
      let lossy = disk.copy()
      lossy.erase("/db/00000000000000000003.checkpoint")
      lossy.overwrite("/db/00000000000000000004.checkpoint", at: 70, with: [1, 2, 3, 4])
      var whole = options
      whole.loading = .whole
      let survivor = try Engine.open(at: "/db", options: whole, environment: lossy.environment)
      #expect(survivor.head.root == engine.head.root && survivor.head.lsn == engine.head.lsn)
      #expect(survivor.report.checkpointLSN == LogSequenceNumber(2))
      try survivor.close()
      // Taken once more, it counts.
      try take(5)
      #expect(
        names(disk, ".checkpoint").suffix(2) == [
          "00000000000000000004.checkpoint", "00000000000000000005.checkpoint",
        ], "\(history)")
      if history == .none { #expect(names(disk, ".checkpoint").count == 2) }
      try engine.close()
    }
  }
}
