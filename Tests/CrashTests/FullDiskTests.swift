import DendroTestSupport
import Testing

/// G9: a real disk that is full at every 4 KiB step. If nothing can be mounted it does not run, and
/// says so.
@Suite struct FullDiskTests {
  @Test func everyStepOfAFullDisk() async throws {
    let count = Scale.ofProcesses(256)
    let run = try await LabRun("full", "--count", "\(count)")
    let row = try #require(run.report.rows.first)
    #expect(run.status == (row.notRun == nil ? 0 : 69))
    guard row.notRun == nil else { return }
    #expect(row.count == count)
    #expect(row.details["writes refused", default: 0] >= 2 * count)
    #expect(row.details["checkpoints refused", default: 0] > 0)
    #expect(row.details["checkpoints", default: 0] >= 2 * count)
  }
}
