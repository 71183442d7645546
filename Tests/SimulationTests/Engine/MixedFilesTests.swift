import DendroCrashHarness
import DendroTestSupport
import Testing

/// Files that do not belong together: what a careless copy or restore leaves.
@Suite struct MixedFilesTests {
  /// Served is what is wholly the one or wholly the other, whatever the files that they have in
  /// common.
  @Test func everyMixOfTheFilesOfTwoForks() async throws {
    let sweep = MixedFiles.mixes(of: try Forks())
    let tally = await sweep.check(goal: sweep.jobs.count)
    #expect(tally.details["served"] == 2 << 1)
  }

  /// The beginning of one fork's segment with the end of the other's, at every byte.
  @Test func everySpliceOfTwoForks() async throws {
    let sweep = MixedFiles.splices(of: try Forks())
    await sweep.check(goal: 2 * sweep.jobs.count)
  }

  /// Without its seal a segment is held against its successor: another fork's does not confirm it.
  @Test func everyLostSealBeforeTheOtherForksSegments() async throws {
    let sweep = MixedFiles.lostSeals(of: try Forks())
    let tally = await sweep.check(goal: sweep.jobs.count)
    #expect(tally.details["served"] == 28)
  }

  @Test func aSegmentOfAnotherDatabase() async throws {
    let sweep = MixedFiles.strangers(of: try Forks())
    #expect(sweep.jobs.count >= 2)
    await sweep.check(goal: sweep.jobs.count)
  }

  @Test func aCheckpointOfAnotherDatabase() async throws {
    await (try MixedFiles.strangerCheckpoint()).check(goal: 1)
  }

  /// Two checkpoints are kept and the log back to the older one, so that any damage to the newest
  /// can be made up for; the report names it.
  @Test func theOlderCheckpointServes() async throws {
    let sweep = try MixedFiles.damagedCheckpoints()
    let tally = await sweep.check(goal: sweep.jobs.count)
    #expect(tally.details["the older one served", default: 0] > sweep.jobs.count / 2)
  }

  /// G13: the same log replayed twice gives the same tree and the same content hash, which are the
  /// live ones; the same seed gives the same calls, files, events and answers.
  @Test func sameSeedSameFiles() async {
    await Determinism.sweep.check(
      0..<UInt64(Scale.scaled(1000)), goal: Scale.scaled(1000))
  }
}
