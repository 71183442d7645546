import DendroTestSupport
import DendroTesting
import Testing

@testable import DendroStorage

/// Crashes at every call, with every state that a disk may be left in, and crashes of what
/// recovers from them.
@Suite struct LogCrashTests {
  /// What a run promised: after so many operations, so many writes are acknowledged.
  struct Promise {
    var operationCount: Int
    var acknowledged: Int
  }

  struct Run {
    let disk = SimulatedDisk(seed: 5)
    var promises: [Promise] = []
    var payloads: [[UInt8]] = []

    /// The most that is promised by the time that so many operations were made.
    func acknowledged(by operationCount: Int) -> Int {
      promises.last { $0.operationCount <= operationCount }?.acknowledged ?? 0
    }
  }

  enum Step: CaseIterable {
    case small, large, batch, unsynchronized, largeUnsynchronized, idle, roll, reopen, close, full,
      fullRoll
  }

  /// Does the steps on a fresh disk. Steps that need an open log open it.
  static func run(_ steps: [Step], options: LogOptions = plainOptions) throws -> Run {
    var run = Run()
    var directory: DatabaseDirectory?
    var writer: LogWriter?
    func opened() throws -> LogWriter {
      if let writer { return writer }
      let opened = try open(run.disk)
      directory = opened
      if let log = try read(opened) {
        let new = try LogWriter.resume(
          opened, end: try repairTail(opened, log.end), options: options)
        writer = new
        return new
      }
      let new = try newLog(opened, options: options)
      writer = new
      return new
    }
    func acknowledge() {
      run.promises.append(
        Promise(operationCount: run.disk.operationCount, acknowledged: run.payloads.count))
    }
    for (index, step) in steps.enumerated() {
      switch step {
      case .small, .large, .unsynchronized, .largeUnsynchronized:
        let isLarge = step == .large || step == .largeUnsynchronized
        let isDurable = step == .small || step == .large
        let payload = isLarge ? noise(1100, seed: UInt64(index)) : payload(index, 20 + index)
        run.payloads.append(payload)
        try opened().append(payload, durably: isDurable)
        if isDurable { acknowledge() }
      case .batch:
        for part in 0..<3 {
          run.payloads.append(payload(index * 3 + part, 15))
          try opened().stage(run.payloads[run.payloads.count - 1])
        }
        try opened().write()
        try opened().synchronize()
        acknowledge()
      case .idle: try opened().writeIdleRecord()
      case .roll:
        try opened().roll(time: 1_704_067_200_000)
        acknowledge()
      case .reopen:
        writer = nil
        directory?.close()
        _ = try opened()
        acknowledge()
      case .close:
        try opened().close()
        writer = nil
        directory?.close()
        acknowledge()
      case .fullRoll:
        // A roll that finds no room when all but its last call is done, and is taken back.
        guard try opened().lastLSN >= opened().segment.firstLSN else { continue }
        try opened().synchronize()
        run.disk.inject(.failure(of: .truncate, at: 1, with: SystemError.noSpace.code))
        #expect(throws: StorageError.self) { try opened().roll(time: 1_704_067_200_000) }
        #expect(try opened().poison == nil)
        acknowledge()
      case .full:
        // An append that gets in by a part and is cut back.
        _ = try opened()
        run.disk.inject(DiskFault(.partial(11, SystemError.noSpace.code), of: [.write], at: 1))
        try opened().stage(payload(index, 60))
        #expect(throws: StorageError.self) { try opened().write() }
        try opened().cutBack()
        acknowledge()
      }
    }
    return run
  }

  /// Opens what a crash left, checks it against the promises, and returns how many writes it has.
  private func recover(_ disk: SimulatedDisk, _ run: Run, acknowledged: Int, _ place: String) -> Int
  {
    do throws(StorageError) {
      let directory = try open(disk)
      defer { directory.close() }
      guard let log = try read(directory) else {
        #expect(acknowledged == 0, "\(place): the log is gone")
        return 0
      }
      let found = log.entries.map(\.payload)
      #expect(found.count >= acknowledged, "\(place): \(found.count) of \(acknowledged)")
      #expect(found == Array(run.payloads.prefix(found.count)), "\(place): other payloads")
      let end = try repairTail(directory, log.end)
      let writer = try LogWriter.resume(directory, end: end, options: plainOptions)
      // Nothing is acknowledged before it is on the disk, so what was read must stay.
      try writer.append(bytes("behind"))
      guard let again = try read(directory) else {
        Issue.record("\(place): nothing after the repair")
        return 0
      }
      #expect(again.entries.map(\.payload) == found + [bytes("behind")], "\(place)")
      #expect(again.end.torn == nil && again.end.unsealed == nil, "\(place)")
      return found.count
    } catch {
      Issue.record("\(place): \(error)")
      return 0
    }
  }

  private func crashEverywhere(
    _ steps: [Step], options: LogOptions = plainOptions, enumeration: CrashEnumeration,
    second: Bool = false
  ) throws -> Int {
    let run = try Self.run(steps, options: options)
    var count = 0
    for point in run.disk.crashPoints() {
      let acknowledged = run.acknowledged(by: point.operationCount)
      point.forEachState(enumeration) { state in
        let disk = point.disk(state)
        let place = "\(steps) at \(point.operationCount), \(state)"
        let found = recover(disk, run, acknowledged: acknowledged, place)
        count += 1
        guard second else { return }
        // Another crash at each call of the recovery, which had promised `found` only once its last
        // append was acknowledged; before, what the first crash had to leave must still be there.
        for again in disk.crashPoints() {
          for state in [again.allKept, again.allDropped] {
            _ = recoverAgain(
              again.disk(state), run, acknowledged: acknowledged, found,
              "\(place); then at \(again.operationCount), \(state)")
            count += 1
          }
        }
      }
    }
    return count
  }

  private func recoverAgain(
    _ disk: SimulatedDisk, _ run: Run, acknowledged: Int, _ found: Int, _ place: String
  ) -> Int {
    do throws(StorageError) {
      let directory = try open(disk)
      defer { directory.close() }
      guard let log = try read(directory) else {
        #expect(acknowledged == 0, "\(place): the log is gone")
        return 0
      }
      var entries = log.entries.map(\.payload)
      if entries.last == bytes("behind") {
        entries.removeLast()
        #expect(entries.count == found, "\(place)")
      }
      #expect(entries.count >= acknowledged, "\(place)")
      #expect(entries == Array(run.payloads.prefix(entries.count)), "\(place)")
      _ = try repairTail(directory, log.end)
      return entries.count
    } catch {
      Issue.record("\(place): \(error)")
      return 0
    }
  }

  static let short: [[Step]] = {
    var all: [[Step]] = []
    let steps = Step.allCases.filter { $0 != .largeUnsynchronized }
    for a in steps {
      for b in steps {
        for c in [Step.small, .roll, .reopen, .close, .unsynchronized] { all.append([a, b, c]) }
      }
    }
    return all
  }()

  @Test("short workloads: a crash at every call, every state")
  func shortWorkloads() throws {
    var enumeration = CrashEnumeration()
    enumeration.onlyNew = true
    enumeration.tornByteStride = 7
    enumeration.subsetLimit = 6
    enumeration.sampleCount = 8
    var count = 0
    #if DEBUG
      let stride = 9
    #else
      let stride = 1
    #endif
    for (index, steps) in Self.short.enumerated() where index % stride == 0 {
      count += try crashEverywhere(steps, enumeration: enumeration)
    }
    #expect(count > 50_000 / stride)
  }

  @Test("an append torn at every byte and in every sector, with zeros and garbage in its place")
  func tornAppend() throws {
    var enumeration = CrashEnumeration()
    enumeration.onlyNew = true
    let count = try crashEverywhere(
      [.small, .large, .batch, .unsynchronized, .large], enumeration: enumeration)
    #expect(count > 5_000)
  }

  @Test("unsynchronized sectors in any order and combination, of 512 bytes and of 4 KiB")
  func reorderedAndDroppedSectors() throws {
    var enumeration = CrashEnumeration()
    enumeration.onlyNew = true
    enumeration.tornByteStride = .max
    // Up to ten sectors in every combination; of more, random ones.
    let count = try crashEverywhere(
      [.small] + Array(repeating: .largeUnsynchronized, count: 4) + [.small],
      enumeration: enumeration)
    #expect(count > 1_000)
  }

  @Test("with preallocated space, whose size may be durable or not")
  func preallocatedSpaceOfDoubtfulSize() throws {
    var enumeration = CrashEnumeration()
    enumeration.onlyNew = true
    enumeration.tornByteStride = 13
    _ = try crashEverywhere(
      [.small, .large, .roll, .small, .close, .small, .unsynchronized, .close],
      options: LogOptions(), enumeration: enumeration)
  }

  @Test("a roll torn at every byte of its seal")
  func tornRoll() throws {
    var enumeration = CrashEnumeration()
    enumeration.onlyNew = true
    _ = try crashEverywhere(
      [.small, .roll, .small, .roll, .reopen, .small], enumeration: enumeration)
  }

  @Test("a roll that is taken back for want of room")
  func abandonedRoll() throws {
    var enumeration = CrashEnumeration()
    enumeration.onlyNew = true
    enumeration.tornByteStride = 5
    _ = try crashEverywhere(
      [.small, .fullRoll, .small, .fullRoll, .roll, .small, .fullRoll, .close],
      enumeration: enumeration)
  }

  @Test("a second crash at every call of the recovery")
  func crashInRecovery() throws {
    var enumeration = CrashEnumeration()
    enumeration.onlyNew = true
    enumeration.tornByteStride = 17
    enumeration.sampleCount = 2
    enumeration.subsetLimit = 4
    enumeration.rests = [.absent, .garbage(seed: 2)]
    let count = try crashEverywhere(
      [.small, .unsynchronized, .roll, .batch, .unsynchronized, .reopen, .small],
      enumeration: enumeration, second: true)
    #expect(count > 2_000)
  }
}
