package import DendroEngine
import DendroStorage
package import DendroTesting
import DendroTree
import DendroTestSupport

/// Opens what a crash left and holds it against the recording.
package struct CrashJudge {
  package let recording: EngineRecording
  package let point: CrashPoint
  /// The last write that must be there, and the last that may.
  package let bounds: ClosedRange<Int>

  package init(_ recording: EngineRecording, _ point: CrashPoint) {
    self.recording = recording
    self.point = point
    bounds = recording.durability.legalWrites(at: point.operationCount)
  }

  /// What is wrong with the state, or nil.
  ///
  /// - Parameter isThorough: whether the recovered database is also written to, is
  ///   crashed again, and closed in order.
  package func problem(of state: CrashState, isThorough: Bool) -> String? {
    let crashed = point.disk(state, seed: UInt64(point.operationCount))
    let left = crashed.copy()
    do throws(EngineError) {
      let engine = try EngineRecording.open(crashed)
      if let problem = Self.problem(of: engine, recording, bounds) { return problem }
      if let problem = Self.tornFileProblem(engine.report, left, crashed) { return problem }
      let checkpoint = Int(engine.report.checkpointLSN?.rawValue ?? 0)
      if checkpoint < recording.checkpointed(at: point.operationCount) {
        return "the checkpoint that was said to be durable is not there, only that of \(checkpoint)"
      }
      guard isThorough else { return nil }
      let (root, lsn) = engine.head
      if ModelTree(root) != recording.durability.trees[Int(lsn.rawValue)] {
        return "not the oracle's tree of write \(lsn)"
      }
      do {
        try root.checkInvariants()
      } catch {
        return "the tree's invariants: \(error)"
      }
      if let problem = Self.logProblem(crashed) { return "a walk over the log: \(problem)" }
      return try continued(engine, crashed)
    } catch {
      return "refused: \(error)"
    }
  }

  /// What is wrong with an opened engine, or nil.
  package static func problem(
    of engine: Engine, _ recording: EngineRecording, _ bounds: ClosedRange<Int>
  ) -> String? {
    let (root, lsn) = engine.head
    let last = Int(lsn.rawValue)
    if last < bounds.lowerBound {
      return "write \(bounds.lowerBound) was acknowledged, \(last) is the last"
    }
    if last > bounds.upperBound {
      return "write \(last) is there, only \(bounds.upperBound) were begun"
    }
    if root != recording.trees[last] { return "not the tree of write \(last)" }
    if recording.mirrors, let problem = Session.mirrorProblem(of: engine) { return problem }
    if let checkpoint = engine.report.unreadableCheckpoints.first {
      return "a crash left a checkpoint that cannot be read: \(checkpoint)"
    }
    if let file = engine.report.foreignFiles.first { return "a file of no known name: \(file)" }
    if engine.report.lastLSN != lsn { return "the report names write \(engine.report.lastLSN)" }
    return nil
  }

  /// What a recovery cut is kept, byte for byte.
  ///
  /// - `before`: as the crash left it.
  /// - `after`: recovered.
  static func tornFileProblem(
    _ report: RecoveryReport, _ before: SimulatedDisk, _ after: SimulatedDisk
  ) -> String? {
    guard report.tornTail != nil else { return nil }
    guard let name = report.tornFile, let kept = after.contents(of: Forks.path(name)) else {
      return "what was cut is in no file"
    }
    let number = name.split(separator: "torn-").last?.prefix { $0.isNumber } ?? ""
    let segment = before.contents(of: Forks.path(String(name.prefix(24)))) ?? []
    guard let offset = Int(number), offset + Int(report.tornByteCount) <= segment.count,
      Array(segment[offset..<offset + Int(report.tornByteCount)]) == kept
    else { return "\(name) does not hold what was cut" }
    return nil
  }

  /// What is wrong with the files, as a tool sees them that walks over all of the log.
  static func logProblem(_ disk: SimulatedDisk) -> String? {
    var problem: String?
    do throws(StorageError) {
      let directory = try DatabaseDirectory.open(
        EngineRecording.directory, environment: disk.environment, mode: .readOnly)
      defer { directory.close() }
      let cursor = LogCursor(directory)
      while try cursor.step({ if case .problem(let found) = $0 { problem = "\(found)" } }) {}
    } catch {
      return "\(error)"
    }
    return problem
  }

  /// Writes on, crashes so that all that is not durable is lost, opens, closes, opens.
  private func continued(_ engine: Engine, _ disk: SimulatedDisk) throws(EngineError) -> String? {
    let session = Session(engine, disk, mirrors: recording.mirrors)
    var expected = engine.head.root
    for write in [
      Write.set(Path("after"), Node(.string("the crash"))), .increment(Path("n"), .integer(1)),
    ] {
      _ = expected.apply(write)
      session.submit(write, expecting: nil)
    }
    engine.pump()
    for answer in session.takeAnswers() {
      if case .failure(let error) = answer.result { return "no write after recovery: \(error)" }
    }
    let lost = disk.crashPoint()
    let second = lost.disk(lost.allDropped)
    let reopened = try EngineRecording.open(second)
    if recording.mirrors, let problem = Session.mirrorProblem(of: reopened) { return problem }
    if reopened.head.root != expected || reopened.head.lsn != engine.head.lsn {
      return
        "written on after recovery to write \(engine.head.lsn), crashed, and there is write \(reopened.head.lsn)"
    }
    try reopened.checkpoint()
    try reopened.close()
    let third = try EngineRecording.open(second)
    if recording.mirrors, let problem = Session.mirrorProblem(of: third) { return problem }
    if third.head.root != expected || third.report.tornTail != nil {
      return "closed in order after recovery, and found otherwise"
    }
    return nil
  }
}
