import DendroPlatform
import DendroTesting
import Testing

@testable import DendroEngine
@testable import DendroStorage
@testable import DendroTree

/// A follower whose system refuses a call: it tries again, and goes on.
@Suite("Following while the system refuses")
struct TransientErrorTests {
  /// What a writer does between two looks of a follower.
  enum Progress: CaseIterable {
    /// It appends.
    case records
    /// It appends and begins segments.
    case segments
    /// It removes log that the follower has not read.
    case gap
    /// It is killed, and another one cuts what is torn.
    case nextWriter
  }

  private final class Pair {
    let disk = SimulatedDisk(seed: 1)
    var writer: Engine
    let follower: Engine
    let log: CommitLog

    init() throws {
      writer = try Self.open(disk, .readWrite)
      for number in 0..<40 { try Self.write("k\(number % 10)/n\(number)", writer) }
      try writer.checkpoint()
      follower = try Self.open(disk, .following)
      log = CommitLog(try follower.view(at: .root))
      follower.setObserver(log)
    }

    static func open(_ disk: SimulatedDisk, _ mode: Engine.Mode) throws -> Engine {
      var options = EngineOptions.inline
      options.checkpointChunkByteLimit = 200
      return try Engine.open(
        at: "/db", options: options, environment: disk.environment, mode: mode)
    }

    static func write(_ place: String, _ engine: Engine) throws {
      engine.submit(try set(place, .string(incompressible(40))), completion: nil)
      engine.pump()
    }

    func write(_ place: String) throws { try Self.write(place, writer) }

    func make(_ progress: Progress) throws {
      try write("new/first")
      switch progress {
      case .records:
        for number in 0..<5 { try write("k\(number)/more") }
      case .segments:
        for number in 0..<3 {
          try write("k\(number)/more")
          try writer.roll()
        }
        try write("k9/more")
      case .gap:
        for number in 0..<3 {
          try write("k\(number)/more")
          try writer.checkpoint()
        }
        try writer.purgeHistory()
        try write("k9/more")
      case .nextWriter:
        writer = try {
          let segment = "/db/" + disk.names(in: "/db").last { $0.hasSuffix(".log") }!
          try writer.close()
          let size = disk.contents(of: segment)?.count ?? 0
          disk.overwrite(segment, at: size, with: Array(repeating: 0xA5, count: 50))
          return try Self.open(disk, .readWrite)
        }()
        try write("k9/more")
      }
    }
  }

  @Test(
    "whichever call of a look is refused, the next look takes what was missed, each write once",
    arguments: Progress.allCases, [EMFILE, ENFILE, EIO, ENOMEM])
  func everyCall(progress: Progress, code: Int32) throws {
    var number = 0
    var refusedCount = 0
    while true {
      number += 1
      let place = "\(progress), call \(number)"
      let pair = try Pair()
      try pair.make(progress)
      let before = pair.disk.operationCount
      pair.disk.inject(
        DiskFault(
          .error(code), of: [.open, .list, .read, .size, .identity, .lock], at: number,
          pathPart: "/db"))
      do {
        try pair.follower.refresh()
      } catch {
        refusedCount += 1
        #expect(error.description.contains("(errno \(code))"), "\(place): \(error)")
      }
      pair.disk.removeFaults()
      let hasStruck = pair.disk.trace[before...].contains { $0.errno == code }
      // Once more writes, so that all is read up to what came after the refusal.
      try pair.write("behind")
      #expect(try pair.follower.refresh() == pair.writer.head.lsn, "\(place)")
      #expect(pair.log.failures.isEmpty && pair.follower.followingFailure == nil, "\(place)")
      #expect(pair.log.root == pair.writer.head.root, "\(place)")
      #expect(pair.follower.head.root == pair.writer.head.root, "\(place)")
      let lsns = pair.log.lsns
      #expect(lsns == Set(lsns).sorted(), "\(place)")
      if progress == .records || progress == .segments {
        #expect(lsns.count == Int(pair.writer.head.lsn.rawValue) - 40, "\(place)")
        #expect(pair.log.differenceCount == 0, "\(place)")
      }
      try pair.follower.close()
      try pair.writer.close()
      if !hasStruck { break }
    }
    #expect(number > 3 && refusedCount > 0)
  }

  @Test("the thread of a follower reports a refusal once, goes on looking, and says when it can")
  func thread() async throws {
    let disk = SimulatedDisk(seed: 1)
    let writer = try Pair.open(disk, .readWrite)
    try Pair.write("a", writer)
    let events = Received<LogEvent>()
    var options = EngineOptions()
    options.followInterval = .milliseconds(1)
    options.log = { events.add($0) }
    let follower = try Engine.open(
      at: "/db", options: options, environment: disk.environment, mode: .following)
    let log = CommitLog(follower.head.root)
    follower.setObserver(log)
    let before = disk.operationCount
    disk.inject(
      DiskFault(.error(EMFILE), of: [.list], at: 1, isPermanent: true, pathPart: "/db"))
    try Pair.write("b", writer)
    func refusals() -> Int { disk.trace[before...].count { $0.errno == EMFILE } }
    while refusals() < 4, follower.followingFailure == nil { await Task.yield() }
    disk.removeFaults()
    try Pair.write("c", writer)
    while follower.head.lsn != writer.head.lsn, follower.followingFailure == nil {
      await Task.yield()
    }
    #expect(follower.followingFailure == nil && log.failures.isEmpty)
    #expect(log.root == writer.head.root)
    if follower.followingFailure == nil {
      while events.all.count < 2 { await Task.yield() }
      #expect(events.all.map(\.level) == [.warning, .info])
      #expect(events.all.first?.metadata["error"]?.contains("(errno \(EMFILE))") == true)
    }
    try await follower.close()
    try await writer.close()
  }

  @Test("the pauses grow from the interval to a second, or stay at an interval that is longer")
  func pauses() {
    var last = Duration.zero
    for count in 0...2_000 {
      let pause = LogFollower.pause(.milliseconds(20), after: count)
      #expect(pause >= last && pause >= .milliseconds(20) && pause <= .seconds(1))
      last = pause
    }
    #expect(last == .seconds(1))
    #expect(LogFollower.pause(.milliseconds(20), after: 0) == .milliseconds(20))
    #expect(LogFollower.pause(.milliseconds(20), after: 2) == .milliseconds(80))
    #expect(LogFollower.pause(.seconds(5), after: 9) == .seconds(5))
  }

  @Test("who waits for changes of a follower gets those behind a refusal, and no error")
  func changes() async throws {
    let pair = try Pair()
    let reader = try pair.follower.changes(since: pair.follower.head.lsn)
    let signal = pair.follower.pipeline.groupCommit.durableSignal
    let next = Task { () -> Result<[LoggedWrite]?, EngineError> in
      do throws(EngineError) { return .success(try await reader.next()) } catch {
        return .failure(error)
      }
    }
    while !signal.hasWaiters { await Task.yield() }
    try pair.write("one")
    try pair.write("two")
    pair.disk.inject(DiskFault(.error(EIO), of: [.list], at: 1))
    #expect(throws: EngineError.self) { try pair.follower.refresh() }
    pair.disk.removeFaults()
    _ = try? pair.follower.refresh()
    let writes = try await next.value.get()
    #expect(writes?.first?.lsn == LogSequenceNumber(41))
    try await pair.follower.close()
    try await pair.writer.close()
  }
}
