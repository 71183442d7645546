import DendroFuzzTargets
import Testing

/// The fuzzer reaches what stands behind checksums only if what puts them right does so.
@Suite("Mending of fuzzed files")
struct MendingTests {
  @Test("files whose checksums are all gone are right again after it")
  func mends() throws {
    let count = try MendingCheck.run()
    #expect(count > 10)
  }
}
