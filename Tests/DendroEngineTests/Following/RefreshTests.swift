import DendroTesting
import Dispatch
import Synchronization
import Testing

@testable import DendroEngine
@testable import DendroStorage
@testable import DendroTree

/// Readers that read the files again when they are asked to.
@Suite("Refreshing a reader")
struct RefreshTests {
  // The admission lock   reader.refresh()           another refresh
  // held
  //                      reads the files
  //                      waits for the lock         may not read yet: what it reads is newer, and
  // released             shows what was read        would be replaced by what is older
  //                                                 reads the files, shows what was read
  @Test("what a refresh has read is shown before another one reads")
  func order() async throws {
    let disk = SimulatedDisk(seed: 1)
    let writer = try Engine.open(at: "/db", options: .inline, environment: disk.environment)
    func open() throws -> Engine {
      try Engine.open(
        at: "/db", options: .inline, environment: disk.environment, mode: .readOnly)
    }
    let reader = try open()
    let probe = try open()
    writer.submit(try set("a", .integer(1)), completion: nil)
    writer.pump()
    var before = disk.operationCount
    try probe.refresh()
    let callCount = disk.operationCount - before
    #expect(callCount > 0)
    let (isHeld, mayEnd) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
    async let holder: Void = onThread {
      reader.withHead { _, _ in
        isHeld.signal()
        mayEnd.wait()
      }
    }
    await onThread { isHeld.wait() }
    before = disk.operationCount
    async let refreshed = onThread { try? reader.refresh() }
    while disk.operationCount < before + callCount { await Task.yield() }
    // All is read. It is shown under the same lock, which no other refresh can have before.
    var freeCount = 0
    for _ in 0..<1_000 {
      if reader.follower.withLockIfAvailable({ _ in true }) != nil { freeCount += 1 }
      await Task.yield()
    }
    #expect(freeCount == 0)
    mayEnd.signal()
    await holder
    #expect(await refreshed == LogSequenceNumber(1))
    #expect(reader.head.lsn == LogSequenceNumber(1))
    try await reader.close()
    try await probe.close()
    try await writer.close()
  }
}
