import DendroTestSupport
import Testing

/// G15: directories made to do harm, read by processes with 512 MB of address
/// space: each reader, and each verb of `dendro`, ends in a right tree or in an error. A build for a
/// sanitizer needs more than that: there it does not run, and says so.
@Suite struct HostileTests {
  @Test func everyReaderEndsInOrder() async throws {
    let count = Scale.ofProcesses(20_000)
    let run = try await LabRun("hostile", "--count", "\(count)")
    let rows = run.report.rows
    #expect(run.status == (rows.allSatisfy { $0.notRun != nil } ? 69 : 0))
    if rows.map(\.notRun) == ["a sanitizer's build takes more address space to start"] { return }
    #expect(rows.map(\.notRun) == [nil, nil])
    #expect(rows.first?.count == count)
    // Both kinds of end are seen.
    #expect(rows.first?.details["opened", default: 0] ?? 0 > count / 200)
    #expect(rows.first?.details["refused", default: 0] ?? 0 > count / 200)
    #expect(rows.last?.count ?? 0 > count * 3 / 200)
  }
}
