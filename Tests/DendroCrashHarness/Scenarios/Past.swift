import DendroEngine
import DendroStorage
import DendroTestSupport
import DendroTesting
import DendroTree
import Synchronization

/// Which history is kept, how it is read meanwhile, and what is removed.
package enum Past {
  package static let scenarios =
    [
      Scenario("all states are kept", kept),
      Scenario("a state is rebuilt while its log would go", rebuilding),
      Scenario("a state is rebuilt while everything is purged", purgedMeanwhile),
      Scenario("a follower falls behind", slowFollower),
      Scenario("a follower is at the end of the log", followerAtEnd),
      Scenario("a follower of what was purged", purgedFollower),
      Scenario("a follower that would keep too much", followerLimit),
      Scenario("checkpoints that spare no replay", thinning),
      Scenario("files go, crashed at every removal", removals),
      Scenario("files that a crash left unfinished", temporaries),
      Scenario("no checkpoint can be read", unreadable),
      Scenario("what a recovery cut, purged", purgedTorn),
      Scenario("a follower while files are removed", followerLockedOut),
      Scenario("a follower of a segment that is gone", followerOfVanished),
      Scenario("a follower that has ended", followerFailed),
      Scenario("an archive of a damaged log", archiveOfDamaged),
      Scenario("a purge beside an archive that is behind", archiveBehind),
      Scenario("an archive of another log", archiveOfOther),
    ] + refusals + parity

  private static func open(_ environment: Environment, _ history: HistoryRetention)
    throws(EngineError) -> Engine
  {
    var options = EngineRecording.options()
    options.history = history
    return try Engine.open(
      at: EngineRecording.directory, options: options, environment: environment)
  }

  /// Write n sets n to n, so that every state shows its number.
  static func put(_ numbers: ClosedRange<Int64>, _ engine: Engine) throws(EngineError) {
    for number in numbers {
      try engine.put("n", .integer(number))
    }
  }

  private static func number(at lsn: UInt64, _ engine: Engine) throws(EngineError) -> Int64? {
    let root = try engine.root(at: .lsn(LogSequenceNumber(lsn)), isCancelled: { false })
    guard case .integer(let value)? = root?.node(at: Path("n")).scalar else { return nil }
    return value
  }

  // MARK: States

  @Sendable private static func kept() throws {
    let engine = try open(SimulatedDisk(seed: 1).environment, .all)
    for number in 1...30 as ClosedRange<Int64> {
      try put(number...number, engine)
      if number % 5 == 0 { try engine.checkpoint() }
    }
    for lsn in 1...30 as ClosedRange<UInt64> {
      let found = try number(at: lsn, engine)
      if found != Int64(lsn) { throw Violation("after write \(lsn) there is \(found as Any)") }
    }
  }

  @Sendable private static func rebuilding() throws {
    let disk = InterposedDisk(SimulatedDisk(seed: 1))
    let engine = try open(disk.environment, .none)
    try put(1...3, engine)
    try engine.checkpoint()
    for number in 4...7 as ClosedRange<Int64> {
      try put(number...number, engine)
      try engine.roll()
    }
    let failure = Mutex<(any Error)?>(nil)
    disk.interpose(before: .read, on: ".log") {
      do {
        for number in 8...10 as ClosedRange<Int64> {
          try put(number...number, engine)
          try engine.checkpoint()
        }
      } catch {
        failure.withLock { $0 = error }
      }
    }
    let found = try number(at: 6, engine)
    if let failure = failure.withLock({ $0 }) { throw failure }
    try require(found == 6, "there is \(found as Any)")
  }

  @Sendable private static func purgedMeanwhile() throws {
    let disk = InterposedDisk(SimulatedDisk(seed: 1))
    let engine = try open(disk.environment, .all)
    try put(1...6, engine)
    // The first listing chooses where to begin, the second finds the log.
    disk.interpose(before: .list, on: EngineRecording.directory, number: 2) {
      try? engine.purgeHistory()
      try? put(7...8, engine)
    }
    let error = try requireError("write 4 was still there") { () throws(EngineError) in
      try number(at: 4, engine)
    }
    guard case .outOfHistory = error else { throw Violation("refused as \(error)") }
  }

  // MARK: Followers

  @Sendable private static func slowFollower() throws {
    let engine = try open(SimulatedDisk(seed: 1).environment, .none)
    try put(1...3, engine)
    try engine.roll()
    try put(4...6, engine)
    let reader = try engine.changes(since: .zero)
    var found = try reader.page(upTo: LogSequenceNumber(2)).map(\.lsn.rawValue)
    for number in 7...10 as ClosedRange<Int64> {
      try put(number...number, engine)
      try engine.checkpoint()
    }
    while found.count < 10 {
      let page = try reader.page(upTo: LogSequenceNumber(10))
      if page.isEmpty { break }
      found += page.map(\.lsn.rawValue)
    }
    try require(found == Array(1...10), "read \(found)")
  }

  @Sendable private static func followerAtEnd() throws {
    let engine = try open(SimulatedDisk(seed: 1).environment, .none)
    try put(1...1, engine)
    let reader = try engine.changes(since: .zero)
    for number in 2...20 as ClosedRange<Int64> {
      let page = try reader.page(upTo: LogSequenceNumber(UInt64(number - 1)))
      if page.map(\.lsn.rawValue) != [UInt64(number - 1)] {
        throw Violation("read \(page.map(\.lsn))")
      }
      try put(number...number, engine)
    }
  }

  @Sendable private static func purgedFollower() throws {
    let engine = try open(SimulatedDisk(seed: 1).environment, .all)
    try put(1...6, engine)
    let reader = try engine.changes(since: LogSequenceNumber(2))
    try engine.purgeHistory()
    try put(7...8, engine)
    let error = try requireError("writes were read that do not follow") {
      () throws(EngineError) in try reader.page(upTo: LogSequenceNumber(8))
    }
    guard case .outOfHistory = error else { throw Violation("refused as \(error)") }
  }

  /// Ten checkpoints, a segment behind each.
  private static func files(segmentByteCount: UInt64) -> Retention.Files {
    Retention.Files(
      segments: (0...10).map {
        .init(firstLSN: LogSequenceNumber($0 * 10 + 1), byteCount: segmentByteCount)
      },
      checkpoints: (1...10).map { .init(lsn: LogSequenceNumber($0 * 10), byteCount: 100) })
  }

  @Sendable private static func followerLimit() throws {
    var rules = Retention.Rules()
    rules.checkpointFactor = 1
    rules.checkpointByteMin = 1
    rules.followed = [LogSequenceNumber(5)]
    for (size, isKept) in [(100, true), (Retention.followerByteLimit, false)] as [(UInt64, Bool)] {
      let obsolete = Retention.obsolete(files(segmentByteCount: size), rules) { _ in nil }
      if obsolete.segments.isEmpty != isKept {
        throw Violation("segments of \(size) bytes: \(obsolete.segments)")
      }
    }
  }

  @Sendable private static func thinning() throws {
    var rules = Retention.Rules()
    rules.history = .all
    rules.checkpointFactor = 1
    rules.checkpointByteMin = 1000
    // Write 0 is the first base; each needs more than 1,000 bytes of log to the next.
    let obsolete = Retention.obsolete(files(segmentByteCount: 400), rules) { _ in nil }
    if !obsolete.segments.isEmpty { throw Violation("segments are removed") }
    try require(!obsolete.checkpoints.isEmpty, "no checkpoint is removed")
  }

  // MARK: Files

  @Sendable private static func removals() throws {
    var steps: [Step] = []
    for index in 0..<4 { steps += [.set("a/\(index)", .integer(Int64(index))), .roll] }
    steps += [
      .checkpoint, .set("b", .integer(1)), .checkpoint, .set("c", .integer(1)), .checkpoint,
    ]
    let recording = try EngineRecording(seed: 1, steps: steps)
    if let problem = recording.problems.first { throw Violation(problem) }
    for point in recording.points {
      let judge = CrashJudge(recording, point)
      for state in point.firstStates(6) {
        let place = "after call \(point.operationCount) in \(state)"
        if let problem = judge.problem(of: state, isThorough: false) {
          throw Violation("\(place): \(problem)")
        }
        let disk = point.disk(state)
        try EngineRecording.open(disk).close()
        if let problem = CrashJudge.logProblem(disk) { throw Violation("\(place): \(problem)") }
      }
    }
  }

  @Sendable private static func temporaries() throws {
    let disk = SimulatedDisk(seed: 1)
    try EngineRecording.open(disk).close()
    let names = ["00000000000000000009.log.tmp", "00000000000000000009.checkpoint.tmp"]
    for name in names { try disk.make(EngineRecording.directory + "/" + name, [1]) }
    try EngineRecording.open(disk).close()
    let left = names.filter { disk.exists(EngineRecording.directory + "/" + $0) }
    try require(left.isEmpty, "left \(left)")
  }

  /// The error names the file that has to be restored from a copy.
  @Sendable private static func unreadable() throws {
    var steps: [Step] = []
    for index in 0..<4 { steps += [.set("a/\(index)", .integer(Int64(index))), .checkpoint] }
    let disk = try EngineRecording(seed: 1, steps: steps).disk.copy()
    for path in disk.checkpointPaths { disk.flipBit(70 * 8, of: path) }
    let error = try requireError("served") { () throws(EngineError) in
      try EngineRecording.open(disk)
    }
    guard case .storage(.corrupt(let path, _, _, _)) = error else {
      throw Violation("refused as \(error)")
    }
    try require(path.hasSuffix(".checkpoint"), "the error names \(path)")
  }

  @Sendable private static func purgedTorn() throws {
    let disk = SimulatedDisk(seed: 1)
    try EngineRecording.open(disk).close()
    guard let path = disk.segmentPaths.last, let size = disk.contents(of: path)?.count else {
      throw Violation("no segment")
    }
    disk.overwrite(path, at: size, with: [0xf5, 1, 2, 3])
    let engine = try open(disk.environment, .none)
    func torn() -> [String] {
      disk.names(in: EngineRecording.directory).filter { $0.contains("torn") }
    }
    if torn().isEmpty { throw Violation("nothing torn") }
    try put(1...1, engine)
    try engine.purgeHistory()
    try require(torn().isEmpty, "left \(torn())")
  }
}
