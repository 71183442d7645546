import DendroEngine
import DendroStorage
import DendroTesting

/// G3: a crash while recovering from a crash, after each call of the recovery; and a third one
/// during the recovery from that.
package enum RecoveryCrashes {
  package static let sweep = Sweep("G3", stepCount: { CrashStates.steps($0).count }, judge: judge)

  private static func judge(_ place: Reproduction) -> Tally {
    var tally = Tally()
    guard let recording = place.record(&tally, { try CrashStates.recording(place) }) else {
      return tally
    }
    if !place.crashes.isEmpty {
      tally.count += 1
      do throws(EngineError) {
        if let problem = try problem(place, recording) { tally.fail(place, problem) }
      } catch {
        tally.fail(place, "refused: \(error)")
      }
      return tally
    }
    var random = SeededRandomness(seed: place.job)
    let points = recording.points.filter { $0.pendingCount > 0 }
    guard !points.isEmpty else { return tally }
    // 170 such jobs are more than the goal, whatever their recoveries are like.
    while tally.count < 1200, !tally.isHopeless {
      let point = points[Int(random.next() % UInt64(points.count))]
      let judge = CrashJudge(recording, point)
      let state = point.randomState(using: &random)
      var descent = Descent(judge: judge, random: random, tally: tally)
      descent.descend(
        point.disk(state, seed: place.job), judge.bounds, place.at(point.operationCount, state))
      tally = descent.tally
    }
    return tally
  }

  private struct Descent {
    let judge: CrashJudge
    let random: SeededRandomness
    var tally: Tally

    /// Opens the disk, and crashes it after each call that the opening made.
    mutating func descend(_ disk: SimulatedDisk, _ bounds: ClosedRange<Int>, _ place: Reproduction)
    {
      let found: Int
      var tornFile: (path: String, bytes: [UInt8]?)?
      let left = disk.copy()
      do throws(EngineError) {
        let engine = try EngineRecording.open(disk)
        if let problem = CrashJudge.problem(of: engine, judge.recording, bounds) {
          return tally.fail(place, problem)
        }
        if let problem = CrashJudge.tornFileProblem(engine.report, left, disk) {
          return tally.fail(place, problem)
        }
        tornFile = RecoveryCrashes.torn(engine.report, disk)
        found = Int(engine.head.lsn.rawValue)
      } catch {
        return tally.fail(place, "refused: \(error)")
      }
      let calls = disk.operationCount
      var options = CrashEnumeration()
      options.onlyNew = true
      options.subsetLimit = 4
      options.sampleCount = 6
      options.tornByteStride = 13
      options.seed = place.job
      for point in disk.crashPoints() {
        // What was read once it was open must stay.
        let isOpen = point.operationCount == calls
        let next = (isOpen ? found : bounds.lowerBound)...(isOpen ? found : bounds.upperBound)
        point.forEachState(options) { state in
          guard !tally.isHopeless else { return }
          tally.count += 1
          let crash = Reproduction.Crash(operation: point.operationCount, state: state)
          let place = place.at(place.crashes + [crash])
          let second = point.disk(state, seed: place.job)
          if place.crashes.count == 2, random.next() % 64 == 0 {
            tally.details["with a third crash", default: 0] += 1
            return descend(second, next, place)
          }
          do throws(EngineError) {
            let engine = try EngineRecording.open(second)
            if let problem = CrashJudge.problem(of: engine, judge.recording, next) {
              tally.fail(place, problem)
            } else if let tornFile, second.contents(of: tornFile.path) != tornFile.bytes {
              tally.fail(place, "what the recovery before cut is lost")
            }
          } catch {
            tally.fail(place, "refused: \(error)")
          }
        }
      }
    }
  }

  /// One row of crashes alone, with what led to each.
  private static func problem(_ place: Reproduction, _ recording: EngineRecording)
    throws(EngineError) -> String?
  {
    let (first, rest) = (place.crashes[0], place.crashes.dropFirst())
    guard let point = recording.points.first(where: { $0.operationCount == first.operation }) else {
      return "the workload has no operation \(first.operation)"
    }
    recording.disk.explain(point, first.state)
    var bounds = CrashJudge(recording, point).bounds
    var disk = point.disk(first.state, seed: place.job)
    var tornFile: (path: String, bytes: [UInt8]?)?
    for next in rest.map(Optional.some) + [nil] {
      let left = disk.copy()
      let engine = try EngineRecording.open(disk)
      if let problem = CrashJudge.problem(of: engine, recording, bounds)
        ?? CrashJudge.tornFileProblem(engine.report, left, disk)
      {
        return problem
      }
      if let tornFile, disk.contents(of: tornFile.path) != tornFile.bytes {
        return "what the recovery before cut is lost"
      }
      guard let next else { break }
      tornFile = torn(engine.report, disk)
      if disk.operationCount == next.operation {
        bounds = Int(engine.head.lsn.rawValue)...Int(engine.head.lsn.rawValue)
      }
      guard let point = disk.crashPoints().first(where: { $0.operationCount == next.operation })
      else { return "the recovery has no operation \(next.operation)" }
      print("recovery:")
      disk.explain(point, next.state)
      disk = point.disk(next.state, seed: place.job)
    }
    return nil
  }

  /// What a recovery cut, and quarantined in which file.
  private static func torn(_ report: RecoveryReport, _ disk: SimulatedDisk)
    -> (path: String, bytes: [UInt8]?)?
  {
    report.tornFile.map { name in
      let path = EngineRecording.directory + "/" + name
      return (path, disk.contents(of: path))
    }
  }
}
