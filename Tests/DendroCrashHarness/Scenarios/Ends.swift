import DendroEngine
import DendroStorage
import DendroTesting
import DendroTree
import Foundation

/// The end of the log and of its segments: what is cut, taken back, and left by a killed process.
package enum Ends {
  package static let scenarios = [
    Scenario("a roll without room for the seal", sealRoom),
    Scenario("a roll that is taken back", rollTakenBack),
    Scenario("an orderly close that was not synchronized", leftIdleRecord),
    Scenario("a refused write whose cut was not synchronized", leftCut),
    Scenario("bytes that are cut at the same place", cutTwice),
    Scenario("a torn log on a full disk", tornOnFullDisk),
  ]

  @Sendable private static func sealRoom() throws {
    let disk = SimulatedDisk(seed: 1)
    let engine = try EngineRecording.open(disk)
    disk.freeSpace = 1000
    try engine.put("a", .integer(1))
    disk.freeSpace = 10
    let before = disk.operationCount
    try requireError("there was room") { () throws(EngineError) in try engine.roll() }
    if disk.trace[before...].contains(where: { $0.kind == .create }) {
      throw Violation("a segment was begun")
    }
    disk.freeSpace = nil
    try engine.roll()
    try engine.put("a", .integer(2))
    try engine.close()
    try require(try EngineRecording.open(disk).integer(at: "a") == 2, "another tree")
  }

  @Sendable private static func rollTakenBack() throws {
    let disk = SimulatedDisk(seed: 1)
    let engine = try EngineRecording.open(disk)
    var acknowledged: [(operation: Int, value: Int64)] = []
    for value in 1...3 as ClosedRange<Int64> {
      if value == 2 {
        disk.inject(.failure(of: .truncate, at: 1, with: ENOSPC))
        try requireError("nothing failed") { () throws(EngineError) in try engine.roll() }
      }
      try engine.put("a", .integer(value))
      acknowledged.append((disk.operationCount, value))
    }
    try requireAcknowledged(acknowledged, after: disk)
  }

  /// Killed after writing the record of an orderly close, before synchronizing it; the next process begins a
  /// segment, which names that record.
  @Sendable private static func leftIdleRecord() throws {
    let disk = SimulatedDisk(seed: 1)
    let engine = try EngineRecording.open(disk)
    try engine.put("a", .integer(1))
    let acknowledged = disk.operationCount
    disk.inject(
      DiskFault(.error(EIO), of: [.synchronize], at: 1, isPermanent: true, pathPart: ".log"))
    try requireError("nothing failed") { () throws(EngineError) in try engine.close() }
    disk.removeFaults()
    try EngineRecording.open(disk).roll()
    try requireAcknowledged([(acknowledged, 1)], after: disk)
  }

  /// The only write of a segment is refused and cut off. The next opening finds nothing to repair; it shows a tree
  /// without that write, which must not come back with a crash.
  @Sendable private static func leftCut() throws {
    let disk = SimulatedDisk(seed: 1)
    let engine = try EngineRecording.open(disk)
    disk.inject(.failure(of: .synchronize, at: 1, with: EIO))
    try requireError("was acknowledged") { () throws(EngineError) in
      try engine.put("a", .integer(1))
    }
    try requireError("nothing was reported") { () throws(EngineError) in try engine.close() }
    disk.removeFaults()
    let found = try EngineRecording.open(disk).integer(at: "a")
    try require(found == nil, "not cut off: \(found as Any)")
    let point = disk.crashPoint()
    for state in point.firstStates(6) {
      let found = try EngineRecording.open(point.disk(state)).integer(at: "a")
      try require(found == nil, "\(found as Any) is back in \(state)")
    }
  }

  /// Crashed after each call, in every state that the first pending changes allow.
  ///
  /// - Parameter acknowledged: from which call on a must have which value or a higher one.
  private static func requireAcknowledged(
    _ acknowledged: [(operation: Int, value: Int64)], after disk: SimulatedDisk
  ) throws {
    for point in disk.crashPoints() {
      let least = acknowledged.last { $0.operation <= point.operationCount }?.value ?? 0
      for state in point.firstStates(6) {
        try inContext("after call \(point.operationCount) in \(state)") {
          let value = try EngineRecording.open(point.disk(state)).integer(at: "a") ?? 0
          try require(value >= least, "\(value)")
        }
      }
    }
  }

  /// A database whose log ends with other bytes.
  private static func tear(_ disk: SimulatedDisk, _ bytes: [UInt8]) {
    guard let path = disk.segmentPaths.last, let old = disk.contents(of: path) else { return }
    disk.overwrite(path, at: (old.lastIndex { $0 != 0 } ?? -1) + 1, with: bytes)
  }

  @Sendable private static func cutTwice() throws {
    let disk = SimulatedDisk(seed: 1)
    try EngineRecording.open(disk).close()
    let pieces: [[UInt8]] = [[0xf5, 1, 2, 3], [0xf5, 4, 5, 6]]
    for piece in pieces {
      tear(disk, piece)
      guard try EngineRecording.open(disk).report.tornByteCount == 4 else {
        throw Violation("nothing torn")
      }
    }
    let kept = disk.everything.filter { $0.key.contains("torn") }.values
    try require(Set(kept) == Set(pieces), "kept \(kept)")
  }

  @Sendable private static func tornOnFullDisk() throws {
    let disk = SimulatedDisk(seed: 1)
    let engine = try EngineRecording.open(disk)
    try engine.put("a", .integer(1))
    let left = disk.copy()
    tear(left, [0xf5, 1, 2, 3])
    left.freeSpace = 0
    try require(try EngineRecording.open(left).integer(at: "a") == 1, "another tree")
  }
}

extension CrashPoint {
  /// All states of the first pending changes, each there in whole or not at all, the rest lost; and all
  /// of them there.
  func firstStates(_ count: Int) -> [CrashState] {
    let count = min(count, pendingCount)
    return [allKept]
      + (0..<1 << count).map { set in
        CrashState((0..<count).map { set >> $0 & 1 == 1 ? .kept : .dropped })
      }
  }
}
