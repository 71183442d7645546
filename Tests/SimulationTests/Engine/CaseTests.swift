import DendroCrashHarness
import Testing

@Suite("Cases made by hand")
struct CaseTests {
  @Test("who may use a directory, and what becomes of files that are not ours")
  func openers() async { await Openers.sweep.check() }

  @Test("single writes: limits, times, payloads that are none")
  func rules() async { await Rules.sweep.check() }

  @Test("transactions, and who comes between")
  func transactions() async { await Transactions.sweep.check() }

  @Test("durability, a disk that refuses, closing")
  func promises() async { await Promises.sweep.check() }

  @Test("what is cut, taken back, and left by a killed process")
  func ends() async { await Ends.sweep.check() }

  @Test("backups")
  func backups() async { await Backups.sweep.check() }

  @Test("what somebody else does between two calls")
  func moments() async { await Moments.sweep.check() }

  @Test("what is kept of the past, who reads it, and what goes")
  func past() async { await Past.sweep.check() }

  @Test("real files")
  func realFiles() async { await RealFiles.sweep.check() }

  @Test("what an application is told, and what it leaves to be written")
  func applications() async { await Applications.sweep.check() }

  @Test("who waits for whom, and for how long")
  func waiting() async { await Waiting.sweep.check() }

  @Test("who is told what, once, and on which queue")
  func listeners() async { await Listeners.sweep.check() }

  @Test("a wrong field under right checksums is refused")
  func forgeries() async { await Forgeries.sweep.check() }

  @Test("files and records where they do not belong")
  func misplacedFiles() async { await MisplacedFiles.sweep.check() }

  @Test("every segment but the last has its seal, whatever crashed")
  func seals() async throws { try await Seals.sweep().check() }
}
