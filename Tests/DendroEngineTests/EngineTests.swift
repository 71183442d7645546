import DendroEngine
import DendroStorage
import DendroTesting
import DendroTree
import Testing

@Suite("An engine on a disk")
struct EngineTests {
  let disk = SimulatedDisk(seed: 1)

  private func open(_ options: EngineOptions = .inline, _ mode: Engine.Mode = .readWrite) throws
    -> Engine
  {
    try Engine.open(at: "/db", options: options, environment: disk.environment, mode: mode)
  }

  @Test("shows a write at once, and acknowledges it when the disk has it")
  func showsThenAcknowledges() throws {
    let engine = try open()
    let received = Received<LogSequenceNumber?>()
    engine.submit(try set("a/b", .integer(1))) {
      if case .success(let lsn) = $0 { received.add(lsn) }
    }
    #expect(try engine.view(at: path("a/b")).scalar == .integer(1))
    #expect(received.all.isEmpty)
    engine.pump()
    #expect(received.all == [LogSequenceNumber(1)])
    try engine.close()
  }

  @Test("no acknowledgement before the synchronize: a power loss at that moment takes nothing")
  func acknowledgesAfterTheSynchronize() throws {
    let disk = disk
    let engine = try open()
    let received = Received<(lsn: LogSequenceNumber, kept: LogSequenceNumber?)>()
    let notify: Completion = { result in
      guard case .success(let lsn?) = result else { return }
      let point = disk.crashPoint()
      let lost = point.disk(point.allDropped)
      let kept = try? Engine.open(at: "/db", options: .inline, environment: lost.environment)
      received.add((lsn, kept?.head.lsn))
    }
    for round in 0..<4 {
      for i in 0..<3 {
        engine.submit(try set("r\(round)/k\(i)", .integer(Int64(i))), completion: notify)
        if round % 2 == 0 { engine.pump() }
      }
      engine.pump()
      if round == 1 { try engine.roll() }
      if round == 2 { try engine.checkpoint() }
    }
    #expect(received.all.count == 12)
    for (lsn, kept) in received.all { #expect(try #require(kept) >= lsn) }
    try engine.close()
  }

  @Test("an update of several paths is there whole or not at all, whatever a crash leaves of it")
  func updatesAreWholeAfterACrash() throws {
    let engine = try open()
    engine.submit(try set("a/old", .integer(1)), completion: nil)
    engine.pump()
    let before = engine.head.root
    engine.submit(
      Draft(
        .update(
          .root,
          [
            .init(path: try path("a/old"), action: .remove),
            .init(path: try path("b"), action: .increment(.integer(2))),
            .init(
              path: try path("c/text"), action: .set(Node(.string(incompressible(1500))))),
            .init(path: try path("d"), action: .set(Node(.bool(true)))),
          ])), completion: nil)
    let after = engine.head.root
    let start = disk.operationCount
    engine.pump()
    var seen = (whole: 0, none: 0)
    for point in disk.crashPoints() where point.operationCount >= start {
      try point.forEachState { state in
        let root = try Engine.open(
          at: "/db", options: .inline, environment: point.disk(state).environment
        ).head.root
        #expect(root == before || root == after, "\(state)")
        if root == after { seen.whole += 1 } else { seen.none += 1 }
      }
    }
    #expect(seen.whole > 1 && seen.none > 100)
    try engine.close()
  }

  @Test("finds everything again after an orderly close")
  func reopens() throws {
    let engine = try open()
    engine.submit(try set("a/b", .integer(1)), completion: nil)
    engine.submit(Draft(.increment(try path("a/b"), .integer(41))), completion: nil)
    engine.submit(
      Draft(
        .update(
          try path("a"),
          [
            .init(path: try path("c/d"), action: .set(Node(.string("x")))),
            .init(path: try path("e"), action: .set(Node(.double(1.5), priority: .integer(3)))),
          ])), completion: nil)
    engine.submit(Draft(.remove(try path("a/c"))), completion: nil)
    let root = engine.head.root
    try engine.close()
    let again = try open()
    #expect(again.head.root == root)
    #expect(again.head.lsn == LogSequenceNumber(4))
    #expect(again.report.replayedWriteCount == 4)
    #expect(again.report.tornTail == nil)
    try again.close()
  }

  @Test("a write that changes nothing gets no number, and its completion comes in its turn")
  func unchanged() throws {
    let engine = try open()
    let received = Received<LogSequenceNumber?>()
    let notify: Completion = { if case .success(let lsn) = $0 { received.add(lsn) } }
    engine.submit(try set("a", .integer(1)), completion: notify)
    engine.submit(try set("a", .double(1)), completion: notify)
    engine.submit(try set("b", .integer(1)), completion: notify)
    engine.pump()
    #expect(received.all == [LogSequenceNumber(1), nil, LogSequenceNumber(2)])
    try engine.close()
  }

  @Test("a checkpoint and the log after it give the same tree; old files go after the second one")
  func checkpoints() throws {
    let engine = try open()
    for round in 0..<4 {
      for i in 0..<50 {
        engine.submit(try set("k\(i)/r", .integer(Int64(round * 100 + i))), completion: nil)
      }
      engine.pump()
      try engine.checkpoint()
      engine.submit(try set("after/\(round)", .bool(true)), completion: nil)
    }
    let root = engine.head.root
    try engine.close()
    let names = disk.names(in: "/db").sorted()
    #expect(names.filter { $0.hasSuffix(".checkpoint") }.count == 2)
    #expect(names.filter { $0.hasSuffix(".log") }.count == 2)
    let again = try open()
    #expect(again.head.root == root)
    #expect(again.report.checkpointLSN != nil)
    #expect(again.report.replayedWriteCount == 1)
    try again.close()
  }

  @Test("an older checkpoint serves if the newest is damaged, and the report says so")
  func olderCheckpoint() throws {
    let engine = try open()
    for i in 0..<3 {
      engine.submit(try set("k\(i)", .integer(Int64(i))), completion: nil)
      engine.pump()
      try engine.checkpoint()
    }
    let root = engine.head.root
    try engine.close()
    let newest = try #require(
      disk.names(in: "/db").filter { $0.hasSuffix(".checkpoint") }.max())
    #expect(disk.flipBit(8 * 70, of: "/db/" + newest))
    let again = try open()
    #expect(again.head.root == root)
    #expect(again.report.unreadableCheckpoints.count == 1)
    #expect(again.report.checkpointLSN == LogSequenceNumber(2))
    try again.close()
  }

  @Test(
    "a failed synchronize: errors, corrective events, reads go on, writes refused, nothing extra")
  func failedSynchronize() throws {
    let engine = try open()
    let mirror = Mirror()
    engine.setObserver(mirror)
    engine.submit(try set("kept", .integer(1)), completion: nil)
    engine.pump()
    let before = engine.head.root
    disk.inject(.failedSynchronize(at: 1, pages: .kept))
    let received = Received<Bool>()
    engine.submit(try set("lost", .integer(2))) { if case .failure = $0 { received.add(true) } }
    engine.submit(Draft(.remove(try path("kept")))) { if case .failure = $0 { received.add(true) } }
    #expect(try engine.view(at: path("lost")).scalar == .integer(2))
    engine.pump()
    #expect(received.all == [true, true])
    #expect(engine.head.root == before)
    #expect(mirror.root == before)
    #expect(mirror.undoneCount == 1)
    disk.removeFaults()
    let refused = Received<EngineError>()
    engine.submit(try set("more", .integer(3))) {
      if case .failure(let error) = $0 { refused.add(error) }
    }
    engine.pump()
    guard case .poisoned = refused.all.first else {
      Issue.record("expected a poisoned engine, found \(refused.all)")
      return
    }
    #expect(engine.head.root == before)
    try? engine.close()
    let again = try open()
    #expect(again.head.root == before)
    try again.close()
  }

  @Test("a full disk: the batch is taken back, and writes work again once there is room")
  func fullDisk() throws {
    let engine = try open()
    let mirror = Mirror()
    engine.setObserver(mirror)
    engine.submit(try set("kept", .integer(1)), completion: nil)
    engine.pump()
    let before = engine.head.root
    disk.freeSpace = 0
    let received = Received<EngineError>()
    let notify: Completion = { if case .failure(let error) = $0 { received.add(error) } }
    engine.submit(try set("lost", .string(incompressible(1 << 20))), completion: notify)
    engine.pump()
    #expect(received.all.count == 1)
    #expect(engine.head.root == before)
    #expect(mirror.root == before)
    engine.submit(try set("refused", .integer(3)), completion: notify)
    engine.pump()
    #expect(received.all.count == 2)
    disk.freeSpace = nil
    engine.submit(try set("refused", .integer(4)), completion: notify)
    engine.pump()  // looks for room
    let good = Received<LogSequenceNumber?>()
    engine.submit(try set("again", .integer(5))) { if case .success(let l) = $0 { good.add(l) } }
    engine.pump()
    #expect(good.all == [LogSequenceNumber(2)])
    let root = engine.head.root
    try engine.close()
    let again = try open()
    #expect(again.head.root == root)
    try again.close()
  }

  @Test("reads beside a writer, and follows it")
  func readsBeside() throws {
    let engine = try open()
    engine.submit(try set("a", .integer(1)), completion: nil)
    engine.pump()
    let reader = try open(.inline, .readOnly)
    #expect(try reader.view(at: path("a")).scalar == .integer(1))
    let refused = Received<EngineError>()
    reader.submit(try set("a", .integer(9))) { if case .failure(let e) = $0 { refused.add(e) } }
    #expect(refused.all == [.readOnly])
    engine.submit(try set("a", .integer(2)), completion: nil)
    engine.pump()
    #expect(try reader.refresh() == LogSequenceNumber(2))
    #expect(try reader.view(at: path("a")).scalar == .integer(2))
    try reader.close()
    try engine.close()
  }

  @Test("a reader does not follow into another database that was put in the place of its own")
  func replacedDatabase() throws {
    let engine = try open()
    engine.submit(try set("a", .integer(1)), completion: nil)
    engine.pump()
    try engine.close()
    let reader = try open(.inline, .readOnly)
    for name in try disk.list("/db") { try disk.remove("/db/" + name) }
    try open().close()
    let error = #expect(throws: EngineError.self) { try reader.refresh() }
    guard case .storage(.ownershipLost(path: "/db", _)) = error else {
      Issue.record("expected a lost ownership, found \(String(describing: error))")
      return
    }
    #expect(try reader.view(at: path("a")).scalar == .integer(1))
    try reader.close()
  }

  @Test("a second opener gets the holder's process id")
  func locked() throws {
    let engine = try open()
    #expect(throws: EngineError.self) { try self.open() }
    try engine.close()
    try open().close()
  }

  @Test("a backup is a database of its own")
  func backup() throws {
    let engine = try open()
    engine.submit(try set("a/b", .integer(1)), completion: nil)
    engine.pump()
    try engine.backup(to: "/copy")
    let root = engine.head.root
    engine.submit(try set("later", .integer(1)), completion: nil)
    try engine.close()
    let copy = try Engine.open(at: "/copy", options: .inline, environment: disk.environment)
    #expect(copy.head.root == root)
    copy.submit(try set("more", .integer(1)), completion: nil)
    try copy.close()
    let again = try Engine.open(at: "/copy", options: .inline, environment: disk.environment)
    #expect(again.head.lsn == LogSequenceNumber(3 - 1))
    try again.close()
  }

  @Test("a backup that fails takes away what it made, and nothing else")
  func failedBackup() throws {
    let engine = try open()
    engine.submit(try set("a/b", .string(incompressible(400))), completion: nil)
    engine.pump()
    let changes: Set<DiskOperation.Kind> = [
      .createDirectory, .create, .write, .truncate, .synchronize, .rename, .synchronizeDirectory,
    ]
    for isThere in [false, true] {
      var number = 1
      while true {
        let target = isThere ? "/there" : "/new/er/copy"
        if isThere {
          try disk.createDirectory(target)
          _ = try disk.open(target + "/notes", .create)
          _ = try disk.open(target + "/00000000000000000007.log.torn-1", .create)
        }
        let before = disk.names(in: target)
        disk.inject(
          DiskFault(
            .error(SystemError.noSpace.code), of: changes, at: number, isPermanent: true,
            pathPart: target))
        var isDone = false
        do throws(EngineError) {
          try engine.backup(to: target)
          isDone = true
        } catch {}
        disk.removeFaults()
        if isDone { break }
        #expect(disk.names(in: target) == before, "call \(number)")
        #expect(isThere || !disk.exists("/new"), "call \(number)")
        for name in before { try disk.remove(target + "/" + name) }
        if isThere { try disk.remove(target) }
        number += 1
      }
      #expect(number > 10)
    }
    // One that is refused because something is there leaves it alone.
    let names = disk.names(in: "/new/er/copy")
    #expect(throws: EngineError.self) { try engine.backup(to: "/new/er/copy") }
    #expect(disk.names(in: "/new/er/copy") == names)
    let copy = try Engine.open(at: "/new/er/copy", options: .inline, environment: disk.environment)
    #expect(throws: EngineError.self) { try engine.backup(to: "/new/er/copy") }
    #expect(disk.names(in: "/new/er/copy") == names)
    try copy.close()
    try engine.close()
  }

  @Test("many threads: every write is numbered once, all are there again")
  func threads() async throws {
    var options = EngineOptions()
    options.checkpointByteMin = 4096
    let engine = try open(options)
    let lsns = try await withThrowingTaskGroup(of: [LogSequenceNumber].self) { group in
      for task in 0..<8 {
        group.addTask {
          var lsns: [LogSequenceNumber] = []
          for i in 0..<200 {
            let lsn = try await engine.write(try set("t\(task)/k\(i)", .integer(Int64(i))))
            lsns.append(try #require(lsn))
          }
          return lsns
        }
      }
      return try await group.reduce(into: []) { $0 += $1 }
    }
    #expect(Set(lsns).count == 1600)
    #expect(lsns.max() == LogSequenceNumber(1600))
    let root = engine.head.root
    try await engine.close()
    let again = try open()
    #expect(again.head.root == root)
    try await again.close()
  }

  @Test("if the look for room damages the log, room is no longer what is missing")
  func probeFails() throws {
    let engine = try open()
    engine.submit(try set("kept", .integer(1)), completion: nil)
    engine.pump()
    disk.freeSpace = 0
    engine.submit(try set("lost", .string(incompressible(1 << 20))), completion: nil)
    engine.pump()
    disk.freeSpace = nil
    disk.inject(DiskFault(.error(5), at: 1, isPermanent: true))
    let received = Received<EngineError>()
    for _ in 0..<3 {
      engine.submit(try set("a", .integer(2))) { if case .failure(let e) = $0 { received.add(e) } }
      engine.pump()
    }
    disk.removeFaults()
    engine.submit(try set("a", .integer(2))) { if case .failure(let e) = $0 { received.add(e) } }
    engine.pump()
    guard case .poisoned = received.all.last else {
      Issue.record("expected a poisoned engine, found \(received.all)")
      return
    }
    #expect(throws: EngineError.self) { try engine.close() }
    let again = try open()
    #expect(again.head.root.childCount == 1)
    try again.close()
  }
}
