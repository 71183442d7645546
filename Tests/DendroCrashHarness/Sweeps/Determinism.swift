import DendroEngine
import DendroStorage
import DendroTesting

/// G13: the same seed twice gives the same calls, files, events and answers; and what is replayed
/// from the files has the content that the live tree had.
package enum Determinism {
  package static let sweep = Sweep(
    "G13", unit: "seeds", stepCount: { steps($0).count }, judge: judge)

  private static func steps(_ seed: UInt64) -> [Step] {
    var generator = StepGenerator(seed: seed)
    return generator.steps(30)
  }

  private static func judge(_ place: Reproduction) -> Tally {
    var tally = Tally(count: 1)
    do throws(EngineError) {
      let steps = place.kept(of: steps(place.job))
      if place.isExplained { for step in steps { print(step) } }
      let (one, two) = (Transcript(), Transcript())
      let first = try EngineRecording(
        seed: place.job, steps: steps, transcript: one,
        mirrors: EngineRecording.mirrors(place.job))
      let second = try EngineRecording(
        seed: place.job, steps: steps, transcript: two,
        mirrors: EngineRecording.mirrors(place.job))
      for problem in first.problems { tally.fail(place, problem) }
      if one.digest != two.digest { tally.fail(place, "other events or answers") }
      compare(first.disk, second.disk, place, &tally)
      tally.details["lines of events and answers"] = one.lineCount
      // Replay equals live, twice, and the replays leave the same files too.
      let (a, b) = (first.disk.copy(seed: 1), second.disk.copy(seed: 1))
      let roots = [
        try EngineRecording.open(a).head.root, try EngineRecording.open(b).head.root,
      ]
      guard let live = first.finalTrees.first(where: { $0 == roots[0] }) else {
        tally.fail(place, "the replayed tree never was")
        return tally
      }
      let hashes = (roots + [live]).map(CheckpointCoding.contentHash(of:))
      if Set(hashes).count != 1 || roots[0] != roots[1] {
        tally.fail(place, "replayed trees differ from the live one")
      }
      compare(a, b, place, &tally)
      tally.details["checkpoints"] = try checkpointProblems(of: first) { tally.fail(place, $0) }
    } catch {
      tally.fail(place, "the workload itself failed: \(error)")
    }
    return tally
  }

  /// What each checkpoint says of its content is what the live tree had then.
  ///
  /// - Returns: how many there are.
  private static func checkpointProblems(
    of recording: EngineRecording, _ fail: (String) -> Void
  ) throws(EngineError) -> Int {
    do throws(StorageError) {
      let directory = try DatabaseDirectory.open(
        EngineRecording.directory, environment: recording.disk.copy().environment, mode: .readOnly)
      defer { directory.close() }
      let checkpoints = try directory.contents().checkpoints
      for lsn in checkpoints {
        let stored = try CheckpointReader.open(directory, lsn: lsn).contentHash
        if stored != CheckpointCoding.contentHash(of: recording.trees[Int(lsn.rawValue)]) {
          fail("the checkpoint of write \(lsn) has another content hash than the live tree had")
        }
      }
      return checkpoints.count
    } catch {
      throw .storage(error)
    }
  }

  private static func compare(
    _ one: SimulatedDisk, _ two: SimulatedDisk, _ place: Reproduction, _ tally: inout Tally
  ) {
    let (first, second) = (one.trace, two.trace)
    if let index = zip(first, second).enumerated().first(where: {
      $1.0.description != $1.1.description
    })?.offset {
      tally.fail(place, "call \(index + 1) is \(first[index]), then \(second[index])")
    } else if first.count != second.count {
      tally.fail(place, "\(first.count) calls, then \(second.count)")
    }
    let names = one.names(in: EngineRecording.directory)
    if names != two.names(in: EngineRecording.directory) { tally.fail(place, "other files") }
    for name in names where name != "dendro.lock" {
      let path = EngineRecording.directory + "/" + name
      if one.contents(of: path) != two.contents(of: path) {
        tally.fail(place, "\(name) has another content")
      }
    }
  }

  /// All that one seed says, writes and calls, as one number: for comparison with another process.
  package static func digest(of seed: UInt64) -> UInt64? {
    let transcript = Transcript()
    guard
      let recording = try? EngineRecording(
        seed: seed, steps: steps(seed), transcript: transcript)
    else { return nil }
    for operation in recording.disk.trace { transcript.note(operation.description) }
    for name in recording.disk.names(in: EngineRecording.directory) where name != "dendro.lock" {
      transcript.note(name)
      transcript.note(recording.disk.contents(of: EngineRecording.directory + "/" + name) ?? [])
    }
    return transcript.digest
  }
}
