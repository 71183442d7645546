import DendroEngine
import DendroStorage
import DendroTesting
import DendroTree
import Foundation

/// The end of the log and of its segments: what is cut, taken back, and left by a killed process.
package enum Ends {
  package static let sweep = Sweep.cases(
    "ends",
    [
      Case("a roll without room for the seal", sealRoom),
      Case("a roll that is taken back", rollTakenBack),
      Case("a mark that a killed process left", leftMark),
      Case("bytes that are cut at the same place", cutTwice),
      Case("a torn log on a full disk", tornOnFullDisk),
    ])

  @Sendable private static func sealRoom() throws -> String? {
    let disk = SimulatedDisk(seed: 1)
    let engine = try EngineRecording.open(disk)
    disk.freeSpace = 1000
    if let error = engine.put("a", .integer(1)) { return "\(error)" }
    disk.freeSpace = 10
    let before = disk.operationCount
    do throws(EngineError) {
      try engine.roll()
      return "there was room"
    } catch {}
    if disk.trace[before...].contains(where: { $0.kind == .create }) {
      return "a segment was begun"
    }
    disk.freeSpace = nil
    try engine.roll()
    if let error = engine.put("a", .integer(2)) { return "\(error)" }
    try engine.close()
    return try EngineRecording.open(disk).integer(at: "a") == 2 ? nil : "another tree"
  }

  @Sendable private static func rollTakenBack() throws -> String? {
    let disk = SimulatedDisk(seed: 1)
    let engine = try EngineRecording.open(disk)
    var acknowledged: [(operation: Int, value: Int64)] = []
    for value in 1...3 as ClosedRange<Int64> {
      if value == 2 {
        disk.inject(.failure(of: .truncate, at: 1, with: ENOSPC))
        do throws(EngineError) {
          try engine.roll()
          return "nothing failed"
        } catch {}
      }
      if let error = engine.put("a", .integer(value)) { return "\(error)" }
      acknowledged.append((disk.operationCount, value))
    }
    return problem(of: disk, acknowledged)
  }

  /// Killed when it had written the mark of an orderly end and not yet synchronized it; whoever comes next
  /// begins a segment, which names the mark.
  @Sendable private static func leftMark() throws -> String? {
    let disk = SimulatedDisk(seed: 1)
    let engine = try EngineRecording.open(disk)
    if let error = engine.put("a", .integer(1)) { return "\(error)" }
    let acknowledged = disk.operationCount
    disk.inject(
      DiskFault(.error(EIO), of: [.synchronize], at: 1, isPermanent: true, pathPart: ".log"))
    do throws(EngineError) {
      try engine.close()
      return "nothing failed"
    } catch {}
    disk.removeFaults()
    try EngineRecording.open(disk).roll()
    return problem(of: disk, [(acknowledged, 1)])
  }

  /// Crashed after each call, in every state that the first pending changes allow.
  ///
  /// - Parameter acknowledged: from which call on a must have which value or a higher one.
  private static func problem(
    of disk: SimulatedDisk, _ acknowledged: [(operation: Int, value: Int64)]
  ) -> String? {
    for point in disk.crashPoints() {
      let least = acknowledged.last { $0.operation <= point.operationCount }?.value ?? 0
      for state in point.firstStates(6) {
        do throws(EngineError) {
          let value = try EngineRecording.open(point.disk(state)).integer(at: "a") ?? 0
          if value < least { return "after call \(point.operationCount) in \(state): \(value)" }
        } catch {
          return "after call \(point.operationCount) in \(state): \(error)"
        }
      }
    }
    return nil
  }

  /// A database whose log ends with other bytes.
  private static func tear(_ disk: SimulatedDisk, _ bytes: [UInt8]) {
    guard let path = disk.segmentPaths.last, let old = disk.contents(of: path) else { return }
    disk.overwrite(path, at: (old.lastIndex { $0 != 0 } ?? -1) + 1, with: bytes)
  }

  @Sendable private static func cutTwice() throws -> String? {
    let disk = SimulatedDisk(seed: 1)
    try EngineRecording.open(disk).close()
    let pieces: [[UInt8]] = [[0xf5, 1, 2, 3], [0xf5, 4, 5, 6]]
    for piece in pieces {
      tear(disk, piece)
      guard try EngineRecording.open(disk).report.tornByteCount == 4 else { return "nothing torn" }
    }
    let kept = disk.everything.filter { $0.key.contains("torn") }.values
    return Set(kept) == Set(pieces) ? nil : "kept \(kept)"
  }

  @Sendable private static func tornOnFullDisk() throws -> String? {
    let disk = SimulatedDisk(seed: 1)
    let engine = try EngineRecording.open(disk)
    if let error = engine.put("a", .integer(1)) { return "\(error)" }
    let left = disk.copy()
    tear(left, [0xf5, 1, 2, 3])
    left.freeSpace = 0
    return try EngineRecording.open(left).integer(at: "a") == 1 ? nil : "another tree"
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
