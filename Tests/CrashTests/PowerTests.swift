import DendroTestSupport
import Testing

/// G8: the power is cut while a process writes to real file systems, as the loop device sees it. If
/// there is neither root nor a loop device it does not run, and says so.
@Suite struct PowerTests {
  @Test func everyAcknowledgedWriteOutlastsAPowerCut() async throws {
    // Of each of three file systems.
    let whole = 34
    let count = Scale.ofProcesses(whole)
    let run = try await LabRun("power", "--count", "\(3 * count)")
    #expect(run.status == (run.report.rows.allSatisfy { $0.notRun != nil } ? 69 : 0))
    for row in run.report.rows where row.goal == "G8" && row.notRun == nil {
      #expect(row.count == count)
      // On a busy machine a writer may have done nothing by its cut, and with a share of the work there
      // may be a single one.
      if count >= whole {
        #expect(row.details["acknowledged writes", default: 0] > 0, "\(row.what)")
      }
    }
    // Who acknowledges without synchronizing loses: else the cuts would prove nothing.
    for row in run.report.rows where row.goal == nil && row.notRun == nil {
      #expect(row.count > 0, "\(row.what)")
    }
  }
}
