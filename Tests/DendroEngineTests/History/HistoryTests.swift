import DendroEngine
import DendroStorage
import DendroTesting
import DendroTree
import DendroTestSupport
import Testing

@Suite("The past")
struct HistoryTests {
  static let retentions: [HistoryRetention] = [
    .none, .all, .writes(60), .milliseconds(40), .bytes(6000),
  ]

  @Test(
    "every state in the range is the oracle's, whatever is kept",
    arguments: retentions, Scale.seeds(5))
  func states(history: HistoryRetention, seed: UInt64) throws {
    let model = try HistoryModel(seed: seed, history)
    for _ in 0..<5 {
      try model.run(40)
      #expect(try model.problem(of: model.engine, stride: 7) == nil, "seed \(seed)")
    }
    try model.reopen()
    #expect(try model.problem(of: model.engine) == nil, "seed \(seed)")
    try model.engine.close()
    let reader = try Engine.open(
      at: "/db", options: .inline, environment: model.disk.environment, mode: .readOnly)
    #expect(try model.problem(of: reader, stride: 7) == nil, "seed \(seed), read-only")
    try reader.close()
  }

  @Test("as much stays as was asked for, and not without end", arguments: [4, 5, 6] as [UInt64])
  func extent(seed: UInt64) throws {
    for history in Self.retentions {
      let model = try HistoryModel(seed: seed, history)
      try model.run(300)
      model.submit()
      try model.engine.checkpoint()
      let range = try model.engine.historyRange()
      let oldest = Int(range.oldest.rawValue)
      let older = model.checkpoints.last { $0 < model.last } ?? 0
      switch history {
      case .none: #expect(oldest == older)
      case .all: #expect(oldest == 0)
      case .writes(let count): #expect(oldest <= model.last - Int(count))
      case .milliseconds(let duration):
        #expect(model.times[oldest] <= model.disk.clock.now() - duration)
      case .bytes: #expect(oldest <= older)
      }
      if history != .all { #expect(oldest > 0, "\(history) keeps everything") }
    }
  }

  @Test("a state that is admitted and not yet durable is served, and the disk is asked first")
  func admitted() throws {
    let model = try HistoryModel(seed: 7, .all)
    for _ in 0..<30 { model.submit() }
    #expect(model.engine.statistics().durableLSN == .zero)
    let head = LogSequenceNumber(UInt64(model.last))
    #expect(try model.engine.root(at: .lsn(head)) == model.trees[model.last])
    #expect(try model.engine.root(at: .time(.max)) == model.trees[model.last])
    #expect(model.engine.statistics().durableLSN == .zero, "reading the head needs no synchronize")
    #expect(try model.problem(of: model.engine) == nil)
    #expect(model.engine.statistics().durableLSN == head)
  }

  @Test("a damaged checkpoint is passed over: an older one and more of the log serve")
  func damagedCheckpoint() throws {
    let model = try HistoryModel(seed: 8, .all)
    model.options.checkpointByteMin = 0
    try model.reopen()
    for _ in 0..<8 {
      for _ in 0..<40 { model.submit() }
      try model.engine.checkpoint()
    }
    let names = model.disk.names(in: "/db").filter { $0.hasSuffix(".checkpoint") }
    #expect(names.count >= 4)
    // In a chunk of one, in the header of another.
    model.disk.flipBit(8 * 100, of: "/db/\(names[1])")
    model.disk.flipBit(8 * 20, of: "/db/\(names[2])")
    #expect(try model.problem(of: model.engine, stride: 3) == nil)
  }

  @Test("damage of the log before a state is reported with its place; other states can be read")
  func damagedLog() throws {
    let model = try HistoryModel(seed: 9, .all)
    for _ in 0..<3 {
      for _ in 0..<40 { model.submit() }
      try model.engine.checkpoint()
    }
    let middle = try #require(
      model.disk.names(in: "/db").filter { $0.hasSuffix(".log") }.dropFirst().first)
    model.disk.flipBit(8 * 200, of: "/db/\(middle)")
    let error = #expect(throws: EngineError.self) {
      for lsn in 0...model.last {
        _ = try model.engine.root(at: .lsn(LogSequenceNumber(UInt64(lsn))))
      }
    }
    guard case .storage(.corrupt(let path, _, _, _)) = error else {
      Issue.record("\(error as Any)")
      return
    }
    #expect(path == "/db/\(middle)")
    #expect(try model.engine.root(at: .lsn(LogSequenceNumber(3))) == model.trees[3])
  }

  @Test("a crash at any call leaves a past without a gap", arguments: [1] as [UInt64])
  func crashes(seed: UInt64) throws {
    for history in [HistoryRetention.none, .writes(12), .all] {
      let model = try HistoryModel(seed: seed, history)
      model.options.checkpointByteMin = 500
      try model.reopen()
      for _ in 0..<5 {
        for _ in 0..<6 {
          model.submit()
          model.engine.pump()
        }
        try model.engine.checkpoint()
      }
      try model.engine.purgeHistory()
      model.submit()
      model.engine.pump()
      var enumeration = CrashEnumeration()
      enumeration.subsetLimit = 4
      enumeration.sampleCount = 4
      enumeration.tornByteStride = 4000
      enumeration.onlyNew = true
      enumeration.seed = seed
      // Only those where files are removed or made are of interest here.
      let points = model.disk.crashPoints().filter { $0.pendingCount > 0 }
      for index in stride(from: 0, to: points.count, by: Scale.stride(3)) {
        let point = points[index]
        try point.forEachState(enumeration) { state in
          let disk = point.disk(state)
          let engine = try Engine.open(
            at: "/db", options: model.options, environment: disk.environment)
          let range = try engine.historyRange()
          let place = "seed \(seed), \(history), call \(point.operationCount), \(state)"
          if let problem = try model.problem(of: engine, stride: 9) {
            Issue.record("\(problem): \(place)")
          }
          if let problem = try model.problem(
            ofChangesSince: Int(range.oldest.rawValue), in: engine)
          {
            Issue.record("\(problem): \(place)")
          }
          try engine.close()
        }
      }
    }
  }

  @Test("purged is what was removed: no file holds it, and the tree is as before")
  func purge() throws {
    let model = try HistoryModel(seed: 10, .all)
    let secret = incompressible(60)
    model.engine.submit(try set("secret", .string(secret)), completion: nil)
    model.engine.submit(Draft(.remove(try path("secret"))), completion: nil)
    model.engine.pump()
    let engine = model.engine
    func isThere() -> Bool {
      model.disk.names(in: "/db").contains { name in
        let bytes = model.disk.contents(of: "/db/\(name)") ?? []
        return String(decoding: bytes, as: UTF8.self).contains(secret)
      }
    }
    for _ in 0..<4 {
      engine.submit(try set("other", .integer(Int64(engine.head.lsn.rawValue))), completion: nil)
      try engine.checkpoint()
    }
    #expect(isThere())
    let head = engine.head
    try engine.purgeHistory()
    #expect(!isThere())
    #expect(try engine.historyRange().oldest == head.lsn)
    #expect(engine.head.root == head.root)
    // Once more, with nothing new.
    try engine.purgeHistory()
    engine.submit(try set("other", .bool(true)), completion: nil)
    let last = engine.head
    try engine.close()
    let again = try Engine.open(
      at: "/db", options: model.options, environment: model.disk.environment)
    #expect(again.head.root == last.root)
    #expect(try again.historyRange().oldest == head.lsn)
    try again.close()
  }

  @Test("while a reader holds the directory nothing is purged, and the caller gets an error")
  func purgeBesideReader() throws {
    let model = try HistoryModel(seed: 11, .all)
    try model.run(100)
    let reader = try Engine.open(
      at: "/db", options: .inline, environment: model.disk.environment, mode: .readOnly)
    #expect(throws: EngineError.storage(.locked(path: "/db", pid: 0))) {
      try model.engine.purgeHistory()
    }
    #expect(try model.problem(of: model.engine, stride: 7) == nil)
    #expect(throws: EngineError.readOnly) { try reader.purgeHistory() }
    try reader.close()
    try model.engine.purgeHistory()
    #expect(try model.engine.historyRange().oldest.rawValue == UInt64(model.last))
  }

  @Test("in memory only the head can be read, and nothing followed")
  func inMemory() throws {
    let engine = Engine.inMemory(options: .inline)
    engine.submit(try set("a", .bool(true)), completion: nil)
    #expect(try engine.root(at: .lsn(LogSequenceNumber(1))) == engine.head.root)
    #expect(throws: EngineError.outOfHistory(.lsn(.zero), try engine.historyRange())) {
      try engine.root(at: .lsn(.zero))
    }
    #expect(throws: EngineError.noHistory) { _ = try engine.changes(since: .zero) }
  }

  @Test("cancelled it ends, closed it says so")
  func ending() throws {
    let model = try HistoryModel(seed: 12, .all)
    try model.run(60)
    var count = 0
    let middle = HistoryPoint.lsn(LogSequenceNumber(UInt64(model.last / 2)))
    #expect(
      try model.engine.root(
        at: middle,
        isCancelled: {
          count += 1
          return count > 2
        }) == nil)
    try model.engine.close()
    #expect(throws: EngineError.closed) { try model.engine.root(at: middle) }
    #expect(throws: EngineError.closed) { _ = try model.engine.changes(since: .zero) }
  }

  @Test("beside writers and checkpoints, many callers get the state that they asked for")
  func besideWriters() async throws {
    let disk = SimulatedDisk(seed: 13)
    var options = EngineOptions()
    options.history = .writes(200)
    options.segmentByteLimit = 10_000
    options.checkpointByteMin = 20_000
    options.checkpointFactor = 1
    let engine = try Engine.open(at: "/db", options: options, environment: disk.environment)
    let count: Int64 = 800
    // Write n sets n: every state contains its number.
    let readCount = try await withThrowingTaskGroup(of: Int.self) { group in
      group.addTask {
        for number in 1...count { try await engine.write(set("n", .integer(number))) }
        return 0
      }
      for reader in 0..<3 {
        group.addTask {
          var random = SeededGenerator(seed: UInt64(reader))
          var readCount = 0
          while engine.head.lsn.rawValue < UInt64(count) {
            let range = try await engine.historyRange()
            let lsn = LogSequenceNumber(
              UInt64.random(in: range.oldest.rawValue...range.newest.rawValue, using: &random))
            do {
              let root = try await engine.root(at: .lsn(lsn))
              let expected = lsn == .zero ? nil : Scalar.integer(Int64(lsn.rawValue))
              #expect(root?.node(at: try path("n")).scalar == expected)
              readCount += 1
            } catch EngineError.outOfHistory(_, let now) {
              // It went between the two questions.
              #expect(lsn < now.oldest)
            }
          }
          return readCount
        }
      }
      return try await group.reduce(0, +)
    }
    #expect(readCount > 0)
    try await engine.close()
  }
}
