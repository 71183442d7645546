import DendroTesting
import Synchronization
import DendroTestSupport
import Testing

@testable import DendroStorage

/// A reader that follows a log while it is written: the writer's next step comes between any two calls of
/// the reader.
@Suite("A cursor beside a writer")
struct LiveCursorTests {
  /// A disk on which something happens before a certain call that is made through this.
  final class InterruptedDisk: ForwardingDisk {
    let disk: SimulatedDisk
    private let due = Mutex<(callsLeft: Int, body: (@Sendable () -> Void)?)>((0, nil))

    init(_ disk: SimulatedDisk) { self.disk = disk }

    /// Runs `body` before the call after so many more.
    func interrupt(after callCount: Int, _ body: @escaping @Sendable () -> Void) {
      due.withLock { $0 = (callCount, body) }
    }

    /// Runs what has not run yet; returns whether there was something.
    func finish() -> Bool {
      let body = due.withLock { due in
        defer { due.body = nil }
        return due.body
      }
      body?()
      return body != nil
    }

    func tick() {
      let body = due.withLock { due -> (@Sendable () -> Void)? in
        due.callsLeft -= 1
        guard due.callsLeft < 0, let body = due.body else { return nil }
        due.body = nil
        return body
      }
      body?()
    }

    func list(_ directory: String) throws(SystemError) -> [String] {
      tick()
      return try disk.list(directory)
    }
    func open(_ path: String, _ mode: OpenMode) throws(SystemError) -> any File {
      tick()
      return InterruptedFile(try disk.open(path, mode), self)
    }
    func identity(_ path: String) throws(SystemError) -> FileIdentity {
      tick()
      return try disk.identity(path)
    }
  }

  final class InterruptedFile: ForwardingFile {
    let file: any File
    private let disk: InterruptedDisk

    init(_ file: any File, _ disk: InterruptedDisk) {
      self.file = file
      self.disk = disk
    }

    func read(into buffer: UnsafeMutableRawBufferPointer, at offset: UInt64) throws(SystemError)
      -> Int
    {
      disk.tick()
      return try file.read(into: buffer, at: offset)
    }
    func size() throws(SystemError) -> UInt64 {
      disk.tick()
      return try file.size()
    }
  }

  /// What stands in the two segments at one moment of the writer.
  struct Moment: Sendable {
    var first: [UInt8]
    var second: [UInt8]?
    /// Writes that are whole by then.
    var count: Int

    func put(on disk: SimulatedDisk) {
      if let second {
        if !disk.exists(segmentPath(5)) { _ = try? disk.open(segmentPath(5), .create) }
        disk.overwrite(segmentPath(5), at: 0, with: second)
      }
      disk.overwrite(segmentPath(1), at: 0, with: first)
    }
  }

  /// A writer's way from three writes over a fourth, a new segment and the seal to six.
  private static func moments() throws -> (SimulatedDisk, [Moment]) {
    let disk = SimulatedDisk(seed: 4)
    let directory = try open(disk)
    let writer = try newLog(directory)
    func bytes(_ number: UInt64) -> [UInt8] { disk.contents(of: segmentPath(number)) ?? [] }
    for number in 0..<3 { try writer.append(payload(number, 60)) }
    let start = bytes(1)
    let base = disk.copy()
    try writer.append(payload(3, 60))
    let whole = bytes(1)
    try writer.roll(time: 1_704_067_200_000)
    let sealed = bytes(1)
    let new = bytes(5)
    for number in 4..<6 { try writer.append(payload(number, 60)) }
    let last = bytes(5)
    directory.close()

    func part(_ old: [UInt8], _ new: [UInt8], _ count: Int) -> [UInt8] {
      Array(new[..<(old.count + count)])
    }
    var moments = [Moment(first: start, count: 3)]
    // Half a header, a header, half a payload.
    for count in [3, 20, whole.count - start.count - 5] {
      moments.append(Moment(first: part(start, whole, count), count: 3))
    }
    moments.append(Moment(first: whole, count: 4))
    moments.append(Moment(first: whole, second: new, count: 4))
    moments.append(Moment(first: part(whole, sealed, 9), second: new, count: 4))
    moments.append(Moment(first: sealed, second: new, count: 4))
    moments.append(Moment(first: sealed, second: part(new, last, 30), count: 4))
    moments.append(Moment(first: sealed, second: last, count: 6))
    return (base, moments)
  }

  /// What a cursor has reported.
  private final class Received {
    var segments: [UInt64] = []
    var numbers: [UInt64] = []
    var problems: [LogCursor.Problem] = []
  }

  private static func drain(_ cursor: LogCursor, into received: Received) throws(StorageError) {
    while try cursor.step({ item in
      switch item {
      case .segment(let header, _, _): received.segments.append(header.firstLSN.rawValue)
      case .record(let record, _, let payload):
        if record.kind == .writes, payload != nil {
          received.numbers.append(record.firstLSN.rawValue)
        }
      case .problem(let problem): received.problems.append(problem)
      }
    }) {}
  }

  @Test("it misses nothing, reports nothing twice, and takes no incomplete record for damage")
  func everyInterleaving() throws {
    let (base, moments) = try Self.moments()
    var runCount = 0
    for from in moments.indices {
      for to in moments.indices where to > from {
        for isLive in [true, false] {
          var callCount = 0
          var isReached = true
          while isReached {
            let disk = base.copy()
            moments[from].put(on: disk)
            let interrupted = InterruptedDisk(disk)
            let directory = try DatabaseDirectory.open(
              root,
              environment: Environment(
                fileSystem: interrupted, clock: disk.clock, randomness: disk.randomness),
              mode: .readOnly)
            defer { directory.close() }
            let cursor = LogCursor(directory, isLive: isLive)
            let received = Received()
            interrupted.interrupt(after: callCount) { moments[to].put(on: disk) }
            try Self.drain(cursor, into: received)
            isReached = !interrupted.finish()
            let place = "from \(from) to \(to) before call \(callCount)"
            #expect(received.numbers.count >= moments[from].count, "\(place)")
            if isLive {
              try Self.drain(cursor, into: received)
              #expect(received.numbers.count == moments[to].count, "\(place)")
              moments[moments.count - 1].put(on: disk)
              try Self.drain(cursor, into: received)
              #expect(received.numbers == [1, 2, 3, 4, 5, 6], "\(place)")
              #expect(received.segments == [1, 5], "\(place)")
              #expect(received.problems.isEmpty, "\(place)")
            } else {
              #expect(received.numbers == Array(1...UInt64(received.numbers.count)), "\(place)")
              #expect(received.problems.allSatisfy { $0.isTail }, "\(place): \(received.problems)")
            }
            callCount += 1
            runCount += 1
          }
        }
      }
    }
    #expect(runCount > 500)
  }

  @Test("records that the writer has taken back and replaced are reported as they are now")
  func takenBack() throws {
    let disk = SimulatedDisk(seed: 5)
    let directory = try open(disk)
    let writer = try newLog(directory)
    try writer.append(payload(1, 60))
    let cursor = LogCursor(directory, isLive: true)
    // Of two records the first gets in, as a whole.
    try writer.stage(payload(2, 60))
    var random = SeededGenerator(seed: 1)
    try writer.stage((0..<9000).map { _ in UInt8(truncatingIfNeeded: random.next()) })
    disk.freeSpace = 400
    #expect(throws: StorageError.self) { try writer.write() }
    var received: [[UInt8]] = []
    func step() throws(StorageError) -> Bool {
      try cursor.step { item in
        if case .record(_, _, let payload?) = item { received.append(Array(payload)) }
      }
    }
    while received.isEmpty, try step() {}
    try writer.cutBack()
    disk.freeSpace = nil
    try writer.append(payload(9, 60))
    try cursor.refresh()
    while try step() {}
    #expect(received == [payload(1, 60), payload(9, 60)])
    try writer.close()
  }
}
