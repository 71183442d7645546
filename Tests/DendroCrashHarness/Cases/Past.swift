import DendroEngine
import DendroStorage
import DendroTesting
import DendroTree
import Synchronization

/// What is kept of the past, who reads it meanwhile, and what goes.
package enum Past {
  package static let sweep = Sweep.cases(
    "past",
    [
      Case("all states are kept", kept),
      Case("a state is rebuilt while its log would go", rebuilding),
      Case("a state is rebuilt while everything is purged", purgedMeanwhile),
      Case("a follower falls behind", slowFollower),
      Case("a follower is at the end of the log", followerAtEnd),
      Case("a follower of what was purged", purgedFollower),
      Case("a follower for whom too much would be kept", followerLimit),
      Case("checkpoints that spare no replay", thinning),
      Case("files go, crashed at every removal", removals),
      Case("files that a crash left unfinished", temporaries),
      Case("no checkpoint can be read", unreadable),
      Case("what a recovery cut, purged", purgedTorn),
    ])

  private static func open(_ environment: Environment, _ history: HistoryRetention)
    throws(EngineError) -> Engine
  {
    var options = EngineRecording.options()
    options.history = history
    return try Engine.open(
      at: EngineRecording.directory, options: options, environment: environment)
  }

  /// Write n sets n to n: every state tells its number.
  private static func put(_ numbers: ClosedRange<Int64>, _ engine: Engine) throws(EngineError) {
    for number in numbers {
      if let error = engine.put("n", .integer(number)) { throw error }
    }
  }

  private static func number(at lsn: UInt64, _ engine: Engine) throws(EngineError) -> Int64? {
    let root = try engine.root(at: .lsn(LogSequenceNumber(lsn)), isCancelled: { false })
    guard case .integer(let value)? = root?.node(at: Path("n")).scalar else { return nil }
    return value
  }

  // MARK: States

  @Sendable private static func kept() throws -> String? {
    let engine = try open(SimulatedDisk(seed: 1).environment, .all)
    for number in 1...30 as ClosedRange<Int64> {
      try put(number...number, engine)
      if number % 5 == 0 { try engine.checkpoint() }
    }
    for lsn in 1...30 as ClosedRange<UInt64> {
      let found = try number(at: lsn, engine)
      if found != Int64(lsn) { return "after write \(lsn) there is \(found as Any)" }
    }
    return nil
  }

  @Sendable private static func rebuilding() throws -> String? {
    let disk = InterposedDisk(SimulatedDisk(seed: 1))
    let engine = try open(disk.environment, .none)
    try put(1...3, engine)
    try engine.checkpoint()
    for number in 4...7 as ClosedRange<Int64> {
      try put(number...number, engine)
      try engine.roll()
    }
    let failure = Mutex<String?>(nil)
    disk.interpose(before: .read, on: ".log") {
      do {
        for number in 8...10 as ClosedRange<Int64> {
          try put(number...number, engine)
          try engine.checkpoint()
        }
      } catch {
        failure.withLock { $0 = "\(error)" }
      }
    }
    let found = try number(at: 6, engine)
    if let failure = failure.withLock({ $0 }) { return failure }
    return found == 6 ? nil : "there is \(found as Any)"
  }

  @Sendable private static func purgedMeanwhile() throws -> String? {
    let disk = InterposedDisk(SimulatedDisk(seed: 1))
    let engine = try open(disk.environment, .all)
    try put(1...6, engine)
    // The first listing chooses where to begin, the second finds the log.
    disk.interpose(before: .list, on: EngineRecording.directory, number: 2) {
      try? engine.purgeHistory()
      try? put(7...8, engine)
    }
    do throws(EngineError) {
      let found = try number(at: 4, engine)
      return found == 4 ? "nothing was purged" : "there is \(found as Any)"
    } catch {
      guard case .outOfHistory = error else { return "refused as \(error)" }
      return nil
    }
  }

  // MARK: Followers

  @Sendable private static func slowFollower() throws -> String? {
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
    return found == Array(1...10) ? nil : "told of \(found)"
  }

  @Sendable private static func followerAtEnd() throws -> String? {
    let engine = try open(SimulatedDisk(seed: 1).environment, .none)
    try put(1...1, engine)
    let reader = try engine.changes(since: .zero)
    for number in 2...20 as ClosedRange<Int64> {
      let page = try reader.page(upTo: LogSequenceNumber(UInt64(number - 1)))
      if page.map(\.lsn.rawValue) != [UInt64(number - 1)] { return "told of \(page.map(\.lsn))" }
      try put(number...number, engine)
    }
    return nil
  }

  @Sendable private static func purgedFollower() throws -> String? {
    let engine = try open(SimulatedDisk(seed: 1).environment, .all)
    try put(1...6, engine)
    let reader = try engine.changes(since: LogSequenceNumber(2))
    try engine.purgeHistory()
    try put(7...8, engine)
    do throws(EngineError) {
      let page = try reader.page(upTo: LogSequenceNumber(8))
      return "told of \(page.map(\.lsn)) behind write 2"
    } catch {
      guard case .outOfHistory = error else { return "refused as \(error)" }
      return nil
    }
  }

  /// Ten checkpoints, a segment behind each.
  private static func files(segmentByteCount: UInt64) -> Retention.Files {
    Retention.Files(
      segments: (0...10).map {
        .init(firstLSN: LogSequenceNumber($0 * 10 + 1), byteCount: segmentByteCount)
      },
      checkpoints: (1...10).map { .init(lsn: LogSequenceNumber($0 * 10), byteCount: 100) })
  }

  @Sendable private static func followerLimit() throws -> String? {
    var rules = Retention.Rules()
    rules.checkpointFactor = 1
    rules.checkpointByteMin = 1
    rules.followed = [LogSequenceNumber(5)]
    for (size, isKept) in [(100, true), (Retention.followerByteLimit, false)] as [(UInt64, Bool)] {
      let doomed = Retention.doomed(files(segmentByteCount: size), rules) { _ in nil }
      if doomed.segments.isEmpty != isKept {
        return "segments of \(size) bytes: \(doomed.segments)"
      }
    }
    return nil
  }

  @Sendable private static func thinning() throws -> String? {
    var rules = Retention.Rules()
    rules.history = .all
    rules.checkpointFactor = 1
    rules.checkpointByteMin = 1000
    // Write 0 is the first anchor; each needs more than 1,000 bytes of log to the next.
    let doomed = Retention.doomed(files(segmentByteCount: 400), rules) { _ in nil }
    if !doomed.segments.isEmpty { return "segments go" }
    return doomed.checkpoints.isEmpty ? "none goes" : nil
  }

  // MARK: Files

  @Sendable private static func removals() throws -> String? {
    var steps: [Step] = []
    for index in 0..<4 { steps += [.set("a/\(index)", .integer(Int64(index))), .roll] }
    steps += [
      .checkpoint, .set("b", .integer(1)), .checkpoint, .set("c", .integer(1)), .checkpoint,
    ]
    let recording = try EngineRecording(seed: 1, steps: steps)
    if let problem = recording.problems.first { return problem }
    for point in recording.points {
      let judge = CrashJudge(recording, point)
      for state in point.firstStates(6) {
        let place = "after call \(point.operationCount) in \(state)"
        if let problem = judge.problem(of: state, isThorough: false) {
          return "\(place): \(problem)"
        }
        let disk = point.disk(state)
        try EngineRecording.open(disk).close()
        if let problem = CrashJudge.logProblem(disk) { return "\(place): \(problem)" }
      }
    }
    return nil
  }

  @Sendable private static func temporaries() throws -> String? {
    let disk = SimulatedDisk(seed: 1)
    try EngineRecording.open(disk).close()
    let names = ["00000000000000000009.log.tmp", "00000000000000000009.checkpoint.tmp"]
    for name in names { try disk.make(EngineRecording.directory + "/" + name, [1]) }
    try EngineRecording.open(disk).close()
    let left = names.filter { disk.exists(EngineRecording.directory + "/" + $0) }
    return left.isEmpty ? nil : "left \(left)"
  }

  /// Whoever has to look for a copy is told which file he needs.
  @Sendable private static func unreadable() throws -> String? {
    var steps: [Step] = []
    for index in 0..<4 { steps += [.set("a/\(index)", .integer(Int64(index))), .checkpoint] }
    let disk = try EngineRecording(seed: 1, steps: steps).disk.copy()
    for path in disk.checkpointPaths { disk.flipBit(70 * 8, of: path) }
    do throws(EngineError) {
      _ = try EngineRecording.open(disk)
      return "served"
    } catch {
      guard case .storage(.corrupt(let path, _, _, _)) = error else { return "refused as \(error)" }
      return path.hasSuffix(".checkpoint") ? nil : "told of \(path)"
    }
  }

  @Sendable private static func purgedTorn() throws -> String? {
    let disk = SimulatedDisk(seed: 1)
    try EngineRecording.open(disk).close()
    guard let path = disk.segmentPaths.last, let size = disk.contents(of: path)?.count else {
      return "no segment"
    }
    disk.overwrite(path, at: size, with: [0xf5, 1, 2, 3])
    let engine = try open(disk.environment, .none)
    func torn() -> [String] {
      disk.names(in: EngineRecording.directory).filter { $0.contains("torn") }
    }
    if torn().isEmpty { return "nothing torn" }
    try put(1...1, engine)
    try engine.purgeHistory()
    return torn().isEmpty ? nil : "left \(torn())"
  }
}
