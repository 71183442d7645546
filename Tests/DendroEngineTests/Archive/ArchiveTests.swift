import DendroTestSupport
import DendroTesting
import Foundation
import Synchronization
import Testing

@testable import DendroEngine
@testable import DendroStorage
@testable import DendroTree

/// Archives of a log, and what is restored from them.
@Suite("Archives")
struct ArchiveTests {
  static func open(
    _ disk: SimulatedDisk, _ path: String, _ mode: Engine.Mode = .readWrite
  ) throws -> Engine {
    var options = EngineOptions.inline
    options.segmentByteLimit = 2 << 10
    options.checkpointChunkByteLimit = 256
    return try Engine.open(at: path, options: options, environment: disk.environment, mode: mode)
  }

  static func extend(_ disk: SimulatedDisk, sealedOnly: Bool = false) throws(StorageError)
    -> LogArchive.Extension
  {
    let source = try DatabaseDirectory.open("/db", environment: disk.environment, mode: .following)
    let archive = try LogArchive(of: source, at: "/archive")
    defer { archive.close() }
    return try archive.extend(sealedOnly: sealedOnly)
  }

  /// The tree after each write.
  private final class States: CommitObserver {
    private let states = Mutex<[LogSequenceNumber: Node]>([.zero: .empty])

    subscript(lsn: LogSequenceNumber) -> Node? { states.withLock { $0[lsn] } }

    func committed(_ commit: borrowing Commit, root: borrowing Node) -> Bool {
      let (lsn, root) = (commit.lsn, copy root)
      states.withLock { $0[lsn] = root }
      return false
    }
  }

  @Test(
    "every state from the archive's beginning on is restored, whatever the writer does meanwhile",
    arguments: 0..<UInt64(Scale.scaled(40)))
  func restored(seed: UInt64) throws {
    let disk = SimulatedDisk(seed: seed)
    var random = SeededGenerator(seed: seed)
    var writes = WriteGenerator(seed: seed)
    let states = States()
    var last = LogSequenceNumber.zero
    var beginning: LogSequenceNumber?
    // Without the archive's position the writer would remove what was not copied yet.
    let position = try {
      try Self.open(disk, "/db").close()
      let source = try DatabaseDirectory.open(
        "/db", environment: disk.environment, mode: .following)
      return try source.publishPosition(.zero)
    }()
    for _ in 0..<4 {
      let writer = try Self.open(disk, "/db")
      writer.setObserver(states)
      for _ in 0..<24 {
        switch random.next() % 8 {
        case 0: try writer.roll()
        case 1: try writer.checkpoint()
        case 2, 3:
          let step = try Self.extend(disk, sealedOnly: random.next() % 2 == 0 && beginning != nil)
          last = step.lastLSN
          if beginning == nil { beginning = .zero }
          position?.move(to: last)
          let archived = try Self.open(disk, "/archive", .readOnly)
          #expect(archived.head.lsn == last)
          #expect(archived.head.root == states[last])
          try archived.close()
        default:
          for _ in 0..<Int(random.next() % 5) {
            writer.submit(Draft(writes.write()), completion: nil)
          }
          writer.pump()
        }
      }
      writer.pump()
      if random.next() % 2 == 0 { try writer.close() }
    }
    last = try Self.extend(disk).lastLSN
    #expect(last == (try Self.open(disk, "/db", .readOnly)).head.lsn)
    let archived = try Self.open(disk, "/archive", .readOnly)
    for number in 0..<8 {
      let lsn = LogSequenceNumber(random.next() % (last.rawValue + 1))
      let state = try archived.restore(.lsn(lsn), to: "/restored\(number)")
      #expect(state.lsn == lsn)
      let restored = try Self.open(disk, "/restored\(number)")
      #expect(restored.head.root == states[lsn], "write \(lsn) of \(last)")
      #expect(restored.head.lsn == lsn)
      // It goes on from there.
      restored.submit(try set("more", .integer(Int64(number))), completion: nil)
      restored.pump()
      #expect(restored.head.lsn == lsn.next)
      try restored.close()
    }
    try archived.close()
    #expect { try Self.open(disk, "/archive") } throws: {
      if case EngineError.storage(.archive) = $0 { true } else { false }
    }
  }

  static func source(_ disk: SimulatedDisk, _ count: Int, from first: Int = 0) throws
    -> Engine
  {
    let engine = try open(disk, "/db")
    for number in first..<(first + count) {
      engine.submit(
        try set("n\(number)", .string(incompressible(200 + number))), completion: nil)
      engine.pump()
      if number % 5 == 4 { try engine.roll() }
    }
    return engine
  }

  @Test("wherever it is killed, the archive is unfinished, or holds what it held or more")
  func killed() throws {
    for isFirst in [true, false] {
      var callCount = 0
      var isComplete = false
      var refusedCount = 0
      while !isComplete {
        let disk = SimulatedDisk(seed: 3)
        let states = States()
        var engine = try Self.source(disk, 7)
        try engine.checkpoint()
        var held = LogSequenceNumber.zero
        if !isFirst {
          held = try Self.extend(disk).lastLSN
          try engine.close()
          engine = try Self.source(disk, 9, from: 7)
        }
        let (tree, lsn) = (engine.head.root, engine.head.lsn)
        try engine.close()
        _ = states
        disk.disconnect(after: callCount)
        do throws(StorageError) {
          _ = try Self.extend(disk)
          isComplete = true
        } catch {}
        let left = disk.copy()
        ParityTests.expectHarmless(left, "/archive", "after \(callCount) calls")
        do {
          let found = try Self.open(left, "/archive", .readOnly)
          #expect(found.head.lsn >= held && found.head.lsn <= lsn, "after \(callCount) calls")
          let range = try found.historyRange()
          #expect(range.oldest == .zero)
          for past in [held, found.head.lsn] {
            let root = try #require(try found.state(at: .lsn(past))).root
            #expect(root.childCount == Int(past.rawValue))
          }
          try found.close()
        } catch {
          guard case .storage(let refusal) = error as? EngineError else { throw error }
          switch refusal {
          case .unfinishedBackup, .notFound: refusedCount += 1
          default: Issue.record("after \(callCount) calls: \(refusal)")
          }
          #expect(isFirst)
        }
        #expect(throws: (any Error).self) {
          let writer = try Self.open(left.copy(), "/archive", .readWriteExisting)
          try writer.close()
        }
        // The next one completes it.
        #expect(try Self.extend(left).lastLSN == lsn, "after \(callCount) calls")
        let whole = try Self.open(left, "/archive", .readOnly)
        #expect(whole.head.root == tree, "after \(callCount) calls")
        try whole.close()
        try ParityTests.expectParity(left, "/archive", "after \(callCount) calls")
        callCount += 1
      }
      if isFirst { #expect(refusedCount > 10) }
    }
  }

  @Test("a power loss during an extension leaves an archive with what it held or more")
  func powerLoss() throws {
    let disk = SimulatedDisk(seed: 4)
    try Self.source(disk, 6).close()
    let held = try Self.extend(disk).lastLSN
    try Self.source(disk, 8, from: 6).close()
    let start = disk.crashPoints().count
    let lsn = try Self.extend(disk).lastLSN
    for point in disk.crashPoints().dropFirst(start) {
      point.forEachState { state in
        let crashed = point.disk(state)
        do {
          let found = try Self.open(crashed, "/archive", .readOnly)
          #expect(found.head.lsn >= held && found.head.lsn <= lsn)
          #expect(found.head.root.childCount == Int(found.head.lsn.rawValue))
          try found.close()
          ParityTests.expectHarmless(crashed, "/archive", "\(crashed.names(in: "/archive"))")
        } catch {
          Issue.record("\(error), \(crashed.names(in: "/archive"))")
        }
      }
    }
  }

  @Test("an archive is extended from its own log alone")
  func otherLog() throws {
    let disk = SimulatedDisk(seed: 5)
    try Self.source(disk, 6).close()
    _ = try Self.extend(disk)
    let names = disk.names(in: "/archive")
    // An earlier state that goes on otherwise.
    let old = try Self.open(disk, "/archive", .readOnly)
    _ = try old.restore(.lsn(LogSequenceNumber(3)), to: "/old")
    try old.close()
    for name in disk.names(in: "/db") { try disk.remove("/db/" + name) }
    for name in disk.names(in: "/old") { try disk.rename("/old/" + name, to: "/db/" + name) }
    try Self.source(disk, 6, from: 10).close()
    #expect {
      try Self.extend(disk)
    } throws: {
      if case StorageError.otherLog = $0 { true } else { false }
    }
    #expect(disk.names(in: "/archive") == names)
    // Where a database is, no archive is begun.
    try Self.open(disk, "/other").close()
    let source = try DatabaseDirectory.open("/db", environment: disk.environment, mode: .following)
    #expect {
      try LogArchive(of: source, at: "/other")
    } throws: {
      if case StorageError.io(_, _, _, .exists) = $0 { true } else { false }
    }
  }

  @Test("what the writer has removed before it was copied is missed with an error")
  func removed() throws {
    let disk = SimulatedDisk(seed: 6)
    let writer = try Self.source(disk, 3)
    _ = try Self.extend(disk)
    for number in 10..<14 {
      writer.submit(try set("n\(number)", .integer(1)), completion: nil)
      try writer.checkpoint()
    }
    let error = #expect(throws: StorageError.self) { try Self.extend(disk) }
    #expect(error?.description.contains("no longer has write 4") == true, "\(error as Any)")
    try writer.close()
  }

  @Test("what the writer took back is replaced by what it wrote then")
  func takenBack() throws {
    let disk = SimulatedDisk(seed: 7)
    try Self.source(disk, 2).close()
    do {
      let writer = try Self.open(disk, "/db")
      writer.submit(try set("lost", .string(incompressible(300))), completion: nil)
      writer.pump()
      #expect(try Self.extend(disk).lastLSN == LogSequenceNumber(3))
      // As after a power loss: the last record was not durable yet.
      let directory = try DatabaseDirectory.open(
        "/db", environment: disk.environment, mode: .following)
      let name = try #require(directory.contents().segments.last)
      let offset = try #require(SegmentOutline(name, in: directory).restarts.last).offset
      try disk.open(directory.path(of: name), .readWrite).truncate(to: offset)
    }
    let writer = try Self.open(disk, "/db")
    writer.submit(try set("kept", .integer(1)), completion: nil)
    writer.pump()
    try writer.close()
    #expect(try Self.extend(disk).lastLSN == writer.head.lsn)
    let archived = try Self.open(disk, "/archive", .readOnly)
    #expect(archived.head.root == writer.head.root)
    try archived.close()
  }
}
