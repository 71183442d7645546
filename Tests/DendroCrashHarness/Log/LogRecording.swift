package import DendroStorage
package import DendroTesting

/// A log that was written once on a simulated disk, with all that is needed to judge what a crash
/// at any of its calls leaves. The payloads are opaque; the oracle is the list of them.
package struct LogRecording: Sendable {
  package struct Record: Sendable, Equatable {
    package var firstLSN: UInt64
    package var count: Int
    package var payload: [UInt8]

    package var lastLSN: UInt64 { firstLSN + UInt64(count) - 1 }
  }

  package enum Step: Sendable, Hashable {
    /// So many records in one write.
    case append(Int)
    case synchronize
    case roll
    case idle
    case cutBack
    /// In order, and opened again.
    case close
    /// The process is killed at the n-th call from here on, wherever that falls: nothing more is
    /// synchronized, the lock is gone, the disk stays on; a write at that call gets in `bytes`.
    case kill(call: Int, bytes: Int)
  }

  package static let directory = "/database"
  package let disk: SimulatedDisk
  package private(set) var points: [CrashPoint]
  private var options = LogOptions()
  package private(set) var records: [Record] = []
  /// From which operation on which write was known to be durable.
  private var acknowledged: [(operation: Int, lsn: UInt64)] = [(0, 0)]
  /// From which operation on which write could be on the disk.
  private var attempted: [(operation: Int, lsn: UInt64)] = [(0, 0)]

  package init(seed: UInt64, steps: [Step]) throws(StorageError) {
    disk = SimulatedDisk(seed: seed)
    // Every fourth on a file system that takes no space ahead.
    if seed % 4 == 1 { options.preallocationMin = 0 }
    points = []
    var random = SeededRandomness(seed: seed)
    var log: OpenLog?
    for step in [.cutBack] + steps {
      do throws(StorageError) {
        if case .kill(let call, let bytes) = step {
          disk.inject(DiskFault(.partial(bytes, 5), at: call, isPermanent: true))
          continue
        }
        if log == nil { log = try reopen() }
        try run(step, on: &log, using: &random)
      } catch {
        // Killed: the next opener continues with the files in the system's memory.
        log?.directory.close()
        log = nil
        disk.removeFaults()
      }
    }
    disk.removeFaults()
    if log == nil { _ = try reopen() }
    points = disk.crashPoints()
  }

  private mutating func reopen() throws(StorageError) -> OpenLog {
    let log = try OpenLog(on: disk, options)
    let last = log.found.last?.lastLSN ?? 0
    precondition(
      log.found == Array(records.prefix(log.found.count)) && last >= (acknowledged.last?.lsn ?? 0),
      "a kill alone takes nothing that was acknowledged")
    records = log.found
    attempted.append((disk.operationCount, last))
    acknowledged.append((disk.operationCount, last))
    return log
  }

  private mutating func run(
    _ step: Step, on log: inout OpenLog?, using random: inout SeededRandomness
  ) throws(StorageError) {
    guard let writer = log?.writer else { return }
    switch step {
    case .append(let count):
      for _ in 0..<count {
        let record = Record(
          firstLSN: (records.last?.lastLSN ?? 0) + 1, count: Int.random(in: 1...3, using: &random),
          payload: Self.payload(using: &random))
        records.append(record)
        try log?.stage(record)
      }
      attempted.append((disk.operationCount, records.last?.lastLSN ?? 0))
      return try writer.write()
    case .idle: return try writer.writeIdleRecord()
    case .synchronize: try writer.synchronize()
    case .roll: try writer.roll(time: 1)
    case .cutBack: try writer.cutBack()
    case .close:
      try writer.close()
      log?.directory.close()
      log = nil
    case .kill: return
    }
    acknowledged.append((disk.operationCount, records.last?.lastLSN ?? 0))
  }

  package static func randomSteps(using random: inout SeededRandomness) -> [Step] {
    (0..<Int.random(in: 2...14, using: &random)).flatMap { _ -> [Step] in
      switch Int.random(in: 0..<20, using: &random) {
      case 0..<9: [.append(Int.random(in: 1...3, using: &random)), .synchronize]
      case 9..<12: [.append(1)]
      case 12, 13: [.roll]
      case 14: [.idle]
      case 15: [.cutBack]
      case 16, 17:
        [
          .kill(
            call: Int.random(in: 1...25, using: &random),
            bytes: Int.random(in: 0...120, using: &random))
        ]
      default: [.close]
      }
    }
  }

  private static func payload(using random: inout SeededRandomness) -> [UInt8] {
    let count =
      Int.random(in: 0..<12, using: &random) == 0 ? 1500 : Int.random(in: 4...90, using: &random)
    // Words, so that the compression has something to refer to.
    let words = Array("post star name text ".utf8)
    // The first bytes of a set, in every other payload: a short record may store it.
    let start: [UInt8] = Bool.random(using: &random) ? [0, 1, 0] : []
    return start
      + (0..<count).map { place in
        let draw = random.next()
        return draw % 8 == 0 ? UInt8(truncatingIfNeeded: draw >> 8) : words[place % words.count]
      }
  }

  package func acknowledged(at operation: Int) -> UInt64 {
    acknowledged.last { $0.operation <= operation }?.lsn ?? 0
  }

  package func attempted(at operation: Int) -> UInt64 {
    attempted.last { $0.operation < operation }?.lsn ?? 0
  }

  // MARK: Judging

  /// Opens what the crash left, compares it with the oracle, writes more, opens again.
  ///
  /// - Returns: what is wrong, or nil.
  package func problem(
    of crashed: SimulatedDisk, acknowledged: UInt64, attempted: UInt64
  ) -> String? {
    do throws(StorageError) {
      let log = try OpenLog(on: crashed, options)
      if let problem = compare(log.found, acknowledged: acknowledged, attempted: attempted) {
        return problem
      }
      // What follows a recovery must be found by the next one, whatever was cut.
      let last = log.found.last?.lastLSN ?? 0
      let next = Record(firstLSN: last + 1, count: 1, payload: Array("after the crash".utf8))
      try log.stage(next)
      try log.writer.write()
      try log.writer.synchronize()
      log.directory.close()
      let again = try OpenLog(on: crashed, options)
      guard again.found == log.found + [next] else {
        return "written after recovery to write \(last), but reopening finds \(again.summary)"
      }
      return nil
    } catch {
      return "refused: \(error)"
    }
  }

  private func compare(_ found: [Record], acknowledged: UInt64, attempted: UInt64) -> String? {
    let last = found.last?.lastLSN ?? 0
    if last < acknowledged { return "write \(acknowledged) was acknowledged, \(last) is the last" }
    if last > attempted { return "write \(last) is there, only \(attempted) were begun" }
    guard found == Array(records.prefix(found.count)) else {
      return "the \(found.count) records found are not those that were written"
    }
    return nil
  }
}

/// A log in a directory, read, put in order and ready to be written.
struct OpenLog {
  let directory: DatabaseDirectory
  let writer: LogWriter
  let found: [LogRecording.Record]

  init(on disk: SimulatedDisk, _ options: LogOptions) throws(StorageError) {
    directory = try DatabaseDirectory.open(
      LogRecording.directory, environment: disk.environment, mode: .readWrite(create: true))
    var found: [LogRecording.Record] = []
    let end = try LogReader.read(directory) { (record, payload) throws(StorageError) in
      found.append(
        LogRecording.Record(
          firstLSN: record.firstLSN.rawValue, count: record.count, payload: [UInt8](payload)))
    }
    self.found = found
    guard let end else {
      writer = try LogWriter.create(
        directory,
        databaseID: DatabaseID(high: disk.randomness.next(), low: disk.randomness.next()),
        time: 1, options: options)
      return
    }
    writer = try LogWriter.resume(
      directory, end: repairTail(directory, end), options: options)
  }

  var summary: String { "\(found.count) records to write \(found.last?.lastLSN ?? 0)" }

  func stage(_ record: LogRecording.Record) throws(StorageError) {
    var problem: StorageError?
    record.payload.withUnsafeBytes { bytes in
      do throws(StorageError) {
        try writer.stage(
          bytes, firstLSN: LogSequenceNumber(record.firstLSN), count: record.count, baseTime: 1)
      } catch {
        problem = error
      }
    }
    if let problem { throw problem }
  }
}
