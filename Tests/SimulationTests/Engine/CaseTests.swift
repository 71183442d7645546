import CrashHarness
import Testing

@Suite("Cases made by hand")
struct CaseTests {
  @Test("who may use a directory, and what becomes of files that are not ours")
  func openers() async { await Openers.sweep.check() }

  @Test("single writes: limits, times, transactions, payloads that are none")
  func rules() async { await Rules.sweep.check() }

  @Test("a wrong field under right checksums is refused")
  func forgeries() async { await Forgeries.sweep.check() }

  @Test("files and records where they do not belong")
  func misplacedFiles() async { await MisplacedFiles.sweep.check() }

  @Test("every segment but the last has its seal, whatever crashed")
  func seals() async throws { try await Seals.sweep().check() }
}
