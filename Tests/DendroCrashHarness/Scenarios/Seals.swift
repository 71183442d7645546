package import DendroEngine
import DendroStorage
import DendroTesting
import DendroTree

/// After every crash and recovery each segment but the last has its seal: without it the loss of
/// the segments behind would go unnoticed.
package enum Seals {
  private static let workload: [Step] = [
    .set("a", .integer(1)), .roll, .set("b", .integer(2)), .roll, .set("c", .integer(3)),
    .checkpoint, .set("d", .integer(4)), .roll, .set("e", .integer(5)),
  ]

  /// A job for each call of the workload at which it is killed.
  package static func sweep() throws(EngineError) -> Sweep {
    let calls = try EngineRecording(seed: 1, steps: workload).disk.operationCount
    return Sweep("seals", jobs: 0..<UInt64(calls), judge: judge)
  }

  private static func judge(_ place: Reproduction) -> Tally {
    var tally = Tally()
    do throws(EngineError) {
      let kill = Step.kill(call: Int(place.job) + 1, bytes: 0)
      let recording = try EngineRecording(seed: 1, steps: [kill] + workload)
      for problem in recording.problems { tally.fail(place, problem) }
      var random = SeededRandomness(seed: place.job)
      for point in recording.points where !tally.isHopeless {
        for state in [point.allDropped, point.allKept, point.randomState(using: &random)] {
          tally.count += 1
          let disk = point.disk(state)
          try EngineRecording.open(disk).close()
          if let problem = problem(of: disk) {
            tally.fail(place, "crashed after call \(point.operationCount) in \(state): \(problem)")
          }
        }
      }
    } catch {
      tally.fail(place, "\(error)")
    }
    return tally
  }

  private static func problem(of disk: SimulatedDisk) -> String? {
    var problem: String?
    var previous: String?
    var isSealed = true
    do throws(StorageError) {
      let directory = try DatabaseDirectory.open(
        EngineRecording.directory, environment: disk.environment, mode: .readOnly)
      defer { directory.close() }
      let cursor = LogCursor(directory)
      while try cursor.step({ item in
        switch item {
        case .segment(_, let path, _):
          if let previous, !isSealed { problem = "\(previous) has no seal" }
          (previous, isSealed) = (path, false)
        case .record(let record, _, _): isSealed = record.kind == .seal
        case .problem(let found): problem = "\(found)"
        }
      }) {}
    } catch {
      return "\(error)"
    }
    return problem
  }
}
