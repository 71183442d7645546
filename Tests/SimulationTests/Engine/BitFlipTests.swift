import DendroCrashHarness
import DendroTesting
import DendroTestSupport
import Testing

/// G4: every single bit of a database, flipped; every end of a file, lost; every file, missing.
@Suite struct BitFlipTests {
  @Test func everyBit() async throws {
    let database = try Sweeps.bitDatabase()
    #expect(database.files.count { $0.path.hasSuffix(".log") } >= 3)
    #expect(database.files.count { $0.path.hasSuffix(".checkpoint") } >= 1)
    #expect(database.outcome(database.disk.copy()) == .harmless)
    let stride = Scale.stride(211)
    let total = max(database.byteCount * 8, 524_288)
    await Damage.everyBit(of: database, stride: stride).check(goal: total / stride)
  }

  /// A file that lost its end shows a tree that once was, or is refused.
  @Test func everyTruncation() async throws {
    let sweep = Damage.everyTruncation(of: try Sweeps.smallDatabase())
    let stride = Scale.stride(7)
    await sweep.check(every: stride, goal: sweep.jobs.count / stride)
  }

  /// Any missing file does no harm or is noticed, a segment that the newest checkpoint does not
  /// make up for always: the last one too.
  @Test func everyMissingFile() async throws {
    let sweep = Damage.everyMissingFile(of: try Sweeps.smallDatabase())
    await sweep.check(goal: sweep.jobs.count)
  }
}
