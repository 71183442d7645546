import DendroTestSupport
import Foundation
import Synchronization
import Testing

@testable import Dendro
@testable import DendroEngine

/// What waits for the disk, and what does not, while that is busy.
@Suite("A busy disk", .timeLimit(.minutes(5)))
struct BusyDiskTests {
  private let disk = HeldDisk()

  private func open() throws -> Database {
    try Database.open(
      at: "/db", options: DatabaseOptions(), environment: disk.environment, mode: .readWrite)
  }

  @Test(
    "waiting for events holds no thread, however much there is to be written, and can be cancelled")
  func pendingEvents() async throws {
    let database = try open()
    let ref = database.reference(withPath: "a")
    disk.hold(.synchronize)
    ref.withoutWaiting { $0.setValue(1) }
    disk.waitForCall()
    // As much as may wait for the disk, and a write more.
    let text = String(repeating: "x", count: 9 << 20)
    for number in 0..<8 { ref.child("\(number)").withoutWaiting { $0.setValue(text) } }
    let cancelled = Task { await database.waitForPendingEvents() }
    cancelled.cancel()
    await cancelled.value
    let isTold = Shared(false)
    let disk = disk
    await withTaskGroup(of: Void.self) { group in
      group.addTask {
        await database.waitForPendingEvents()
        isTold.withLock { $0 = true }
      }
      group.addTask {
        let engine = database.engine
        while engine?.heldThreadCount == 0, engine?.pipeline.stall.waitingTaskCount != 2 {
          await Task.yield()
        }
        #expect(engine?.heldThreadCount == 0)
        #expect(!isTold.withLock { $0 })
        disk.release()
      }
    }
    #expect(isTold.withLock { $0 })
    try await database.close()
  }

  @Test("a write that comes while the database is being closed is refused behind those of before")
  func closing() async throws {
    let database = try open()
    let called = Mutex<[String]>([])
    disk.hold(.synchronize)
    database.reference(withPath: "a").setValue(1) { error, _ in
      called.withLock { $0.append("a \(error == nil)") }
    }
    disk.waitForCall()
    let closing = Task { try await database.close() }
    while !database.isClosed { await Task.yield() }
    database.reference(withPath: "b").setValue(2) { error, _ in
      called.withLock { $0.append("b \(error == nil)") }
    }
    disk.release()
    try await closing.value
    while called.withLock({ $0.count }) < 2 { await Task.yield() }
    #expect(called.withLock { $0 } == ["a true", "b false"])
  }
}
