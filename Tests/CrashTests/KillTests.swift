import DendroTestSupport
import Testing

/// G7: real processes with concurrent writers, transactions and checkpoints, killed at random moments.
@Suite struct KillTests {
  /// Nothing acknowledged is lost and nothing is half there, whenever the process dies.
  @Test func killedWritersLoseNothing() async throws {
    let count = Scale.ofProcesses(1000)
    let run = try await LabRun("kill", "--count", "\(count)")
    #expect(run.status == 0)
    let row = try #require(run.report.rows.first)
    #expect(row.count == count)
    #expect(row.details["acknowledged writes", default: 0] > count)
    if count < 1000 { return }
    #expect(row.details["reopened from a checkpoint", default: 0] > 0)
    #expect(row.details["killed while opening", default: 0] > 0)
  }
}
