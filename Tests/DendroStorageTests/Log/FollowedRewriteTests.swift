import DendroTestSupport
import DendroTesting
import Synchronization
import Testing

@testable import DendroStorage

/// A cursor that follows a log while writers come and go: recovery rewrites the last segment under a new
/// inode, a refused batch is cut off, a roll is taken back.
@Suite("A cursor across writers")
struct FollowedRewriteTests {
  private typealias InterruptedDisk = LiveCursorTests.InterruptedDisk

  private final class Reports {
    var segments: [UInt64] = []
    var payloads: [[UInt8]] = []
    var problems: [LogCursor.Problem] = []

    func drain(_ cursor: LogCursor) throws(StorageError) { while try step(cursor) {} }

    func step(_ cursor: LogCursor) throws(StorageError) -> Bool {
      try cursor.step { item in
        switch item {
        case .segment(let header, _, _): segments.append(header.firstLSN.rawValue)
        case .record(let record, _, let payload?) where record.kind == .writes:
          payloads.append(Array(payload))
        case .record: break
        case .problem(let problem): problems.append(problem)
        }
      }
    }
  }

  /// What the next writer does.
  private enum Session: CaseIterable {
    case open, append, roll, rollAndAppend, close, twoSessions

    /// The last write number afterwards.
    func run(on disk: SimulatedDisk, from number: Int) throws -> Int {
      let (directory, writer, _) = try resume(disk)
      defer { directory.close() }
      var last = number
      func append() throws {
        last += 1
        try writer.append(payload(last, 60))
      }
      switch self {
      case .open: break
      case .append:
        try append()
        try append()
      case .roll:
        try append()
        try writer.roll(time: 1_704_067_200_000)
      case .rollAndAppend:
        try append()
        try writer.roll(time: 1_704_067_200_000)
        try append()
      case .close:
        try append()
        try writer.close()
      case .twoSessions:
        try append()
        directory.close()
        return try Session.rollAndAppend.run(on: disk, from: last)
      }
      return last
    }
  }

  /// A log of two segments whose writer was killed after its last record, which nothing proves durable.
  private static func killed(rolls: Bool, tornByteCount: Int) throws -> SimulatedDisk {
    let disk = SimulatedDisk(seed: 6)
    let directory = try open(disk)
    let writer = try newLog(directory)
    for number in 1...4 {
      try writer.append(payload(number, 60))
      if rolls, number == 2 { try writer.roll(time: 1_704_067_200_000) }
    }
    if tornByteCount > 0 {
      let path = segmentPath(rolls ? 3 : 1)
      let size = disk.contents(of: path)!.count
      disk.overwrite(path, at: size, with: noise(tornByteCount, seed: 3))
    }
    directory.close()
    return disk
  }

  @Test(
    "after a kill it continues in the rewritten segment, whenever the next writer comes",
    arguments: [false, true], [0, 30])
  func everyInterleaving(rolls: Bool, tornByteCount: Int) throws {
    var runCount = 0
    for session in Session.allCases {
      var callCount = 0
      var isReached = true
      while isReached {
        let disk = try Self.killed(rolls: rolls, tornByteCount: tornByteCount)
        let interrupted = InterruptedDisk(disk)
        let reading = try DatabaseDirectory.open(
          root,
          environment: Environment(
            fileSystem: interrupted, clock: disk.clock, randomness: disk.randomness),
          mode: .readOnly)
        defer { reading.close() }
        let cursor = LogCursor(reading, isLive: true)
        let reports = Reports()
        let last = Mutex(0)
        interrupted.interrupt(after: callCount) {
          let number = try? session.run(on: disk, from: 4)
          last.withLock { $0 = number ?? 0 }
        }
        try reports.drain(cursor)
        isReached = !interrupted.finish()
        try reports.drain(cursor)
        let place = "\(session) before call \(callCount)"
        let count = last.value
        #expect(reports.payloads == (1...count).map { payload($0, 60) }, "\(place)")
        // One more session, behind whatever the cursor is at now.
        let end = try Session.append.run(on: disk, from: count)
        try reports.drain(cursor)
        #expect(reports.payloads == (1...end).map { payload($0, 60) }, "\(place)")
        #expect(reports.problems.isEmpty, "\(place): \(reports.problems)")
        #expect(reports.segments == Array(Set(reports.segments)).sorted(), "\(place)")
        callCount += 1
        runCount += 1
      }
    }
    #expect(runCount > 40)
  }

  @Test("many sessions that end with a kill, one after the other, are followed to the end")
  func manyKills() throws {
    let disk = try Self.killed(rolls: false, tornByteCount: 0)
    let directory = try openReadOnly(disk)
    defer { directory.close() }
    let cursor = LogCursor(directory, isLive: true)
    let reports = Reports()
    var last = 4
    for round in 0..<30 {
      if round % 3 != 1 { try reports.drain(cursor) }
      last = try Session.allCases[round % Session.allCases.count].run(on: disk, from: last)
    }
    try reports.drain(cursor)
    #expect(reports.payloads == (1...last).map { payload($0, 60) })
    #expect(reports.problems.isEmpty)
  }

  @Test(
    "records that a writer took back after they were read are followed by those written instead")
  func takenBackAfterReading() throws {
    for newByteCount in [20, 60, 200] {
      for rollsAfter in [false, true] {
        let disk = SimulatedDisk(seed: 5)
        let directory = try open(disk)
        let writer = try newLog(directory)
        for number in 1...3 { try writer.append(payload(number, 60)) }
        let cursor = LogCursor(directory, isLive: true)
        let reports = Reports()
        // Of two records the first gets in, as a whole, and is read.
        try writer.stage(payload(4, 60))
        try writer.stage(noise(9000, seed: 1))
        disk.freeSpace = 400
        #expect(throws: StorageError.self) { try writer.write() }
        try reports.drain(cursor)
        #expect(reports.payloads.count == 4)
        try writer.cutBack()
        disk.freeSpace = nil
        for number in 4...6 { try writer.append(payload(10 * number, newByteCount)) }
        if rollsAfter {
          try writer.roll(time: 1_704_067_200_000)
          try writer.append(payload(70, newByteCount))
        }
        try reports.drain(cursor)
        let expected =
          [4, 5, 6].map { payload(10 * $0, newByteCount) }
          + (rollsAfter ? [payload(70, newByteCount)] : [])
        #expect(reports.payloads.suffix(expected.count) == expected[...], "\(newByteCount)")
        #expect(reports.problems.count == 1 && reports.problems.allSatisfy { $0.isTail })
        try writer.close()
        directory.close()
      }
    }
  }

  @Test("records that replace those just read, at the same offsets, are read instead")
  func replacedInPlace() throws {
    let disk = SimulatedDisk(seed: 5)
    let directory = try open(disk)
    let writer = try newLog(directory)
    for number in 1...2 { try writer.append(noise(60, seed: UInt64(number)), durably: false) }
    let other = disk.copy()
    for number in 3...5 { try writer.append(noise(60, seed: UInt64(number)), durably: false) }
    let contents = try #require(disk.contents(of: segmentPath(1)))
    directory.close()

    let reading = try openReadOnly(disk)
    defer { reading.close() }
    let cursor = LogCursor(reading, isLive: true)
    let reports = Reports()
    while reports.payloads.count < 3 { _ = try reports.step(cursor) }
    let (next, nextWriter, _) = try resume(other)
    for number in 13...15 { try nextWriter.append(noise(60, seed: UInt64(number)), durably: false) }
    let replaced = try #require(other.contents(of: segmentPath(1)))
    next.close()
    try #require(replaced.count == contents.count)
    disk.overwrite(segmentPath(1), at: 0, with: replaced)
    try cursor.refresh()
    try reports.drain(cursor)
    let rewritten: [[UInt8]] = (13...15).map { noise(60, seed: UInt64($0)) }
    #expect(Array(reports.payloads.suffix(3)) == rewritten)
    #expect(reports.problems.count == 1 && reports.problems.allSatisfy { $0.isTail })
  }

  @Test("a segment that was begun and taken back for want of room does not stop it")
  func rollTakenBack() throws {
    for looksAt in 0..<4 {
      let disk = SimulatedDisk(seed: 5)
      let directory = try open(disk)
      let reading = try openReadOnly(disk)
      defer { reading.close() }
      let cursor = LogCursor(reading, isLive: true)
      let reports = Reports()
      let writer = try newLog(directory)
      for number in 1...3 { try writer.append(payload(number, 60)) }
      try reports.drain(cursor)
      let byteCount = try #require(disk.contents(of: segmentPath(1))).count
      try writer.roll(time: 1_704_067_200_000)
      if looksAt == 1 {
        // The seal alone: its successor is not opened yet.
        _ = try cursor.step { _ in }
      } else if looksAt > 1 {
        try reports.drain(cursor)
      }
      // What a roll leaves that finds no room in the end.
      disk.erase(segmentPath(4))
      disk.resize(segmentPath(1), to: byteCount)
      if looksAt > 2 { try reports.drain(cursor) }
      directory.close()
      let last = try Session.rollAndAppend.run(on: disk, from: 3)
      try reports.drain(cursor)
      #expect(reports.payloads == (1...last).map { payload($0, 60) }, "\(looksAt)")
      #expect(reports.problems.isEmpty, "\(looksAt): \(reports.problems)")
    }
  }

  @Test("another database in the place of the segment is reported, once")
  func otherDatabase() throws {
    let disk = try Self.killed(rolls: false, tornByteCount: 0)
    let directory = try openReadOnly(disk)
    let cursor = LogCursor(directory, isLive: true)
    let reports = Reports()
    try reports.drain(cursor)
    let other = SimulatedDisk(seed: 9)
    try {
      let directory = try open(other)
      let writer = try newLog(directory)
      try writer.append(payload(1, 60))
      try writer.close()
      directory.close()
    }()
    disk.erase(segmentPath(1))
    _ = try disk.open(segmentPath(1), .create)
    disk.overwrite(segmentPath(1), at: 0, with: other.contents(of: segmentPath(1))!)
    try reports.drain(cursor)
    try reports.drain(cursor)
    #expect(reports.payloads == (1...4).map { payload($0, 60) })
    #expect(reports.problems.count == 1 && reports.problems.allSatisfy { !$0.isTail })
  }
}
