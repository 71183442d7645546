import Dendro
import DendroEngine
import DendroStorage
import DendroTesting
import Foundation
import Testing

/// What an application sees when the disk refuses.
@Suite("A disk that refuses")
struct RefusingDiskTests {
  let disk = SimulatedDisk(seed: 1)

  private func open(
    _ options: DatabaseOptions = DatabaseOptions(), on disk: SimulatedDisk? = nil
  ) throws -> Database {
    try Database.open(
      at: "/db", options: options,
      environment: Environment(
        fileSystem: disk ?? self.disk, clock: SimulatedClock(),
        randomness: SeededRandomness(seed: 1)), mode: .readWrite)
  }

  @Test(
    "after a failed synchronize: errors, corrective events, reads; reopening has what was acknowledged",
    arguments: [DiskFault.Pages.kept, .reverted])
  func failedSynchronize(pages: DiskFault.Pages) async throws {
    let database = try open()
    let ref = database.reference()
    try await ref.setValue(["a": 1, "b": ["c": 2]])
    let recorder = Recorder(database)
    recorder.listen("", ref, [.childAdded, .childChanged, .childRemoved, .value])
    _ = await recorder.take()

    disk.inject(.failedSynchronize(at: 1, pages: pages))
    let error = await failure { try await ref.updateChildValues(["a": 9, "b": NSNull(), "d": 4]) }
    #expect(error?.code == .poisoned)
    #expect(
      await recorder.take() == [
        "removed b={c:2}", "added d=4 after a", "changed a=9 after nil", "value {a:9,d:4}",
        "removed d=4", "added b={c:2} after a", "changed a=1 after nil", "value {a:1,b:{c:2}}",
      ])
    #expect(shown(try await ref.getData().value) == "{a:1,b:{c:2}}")
    #expect(await failure { try await ref.setValue(3) }?.code == .poisoned)
    #expect(await recorder.take() == [])
    _ = await failure { try await database.close() }

    let reopened = try open()
    #expect(
      shown(try await reopened.reference().getData().value) == "{a:1,b:{c:2}}")
    try await reopened.close()
  }

  @Test(
    "a failure to read or purge the past is reported by every form of the calls")
  func refusals() async throws {
    let database = try open()
    try await database.reference(withPath: "a").setValue(1)
    func codes() async -> [DatabaseError.Code?] {
      [
        await failure { try plainly { _ = try database.historyRange() } }?.code,
        await failure { _ = try await database.historyRange() }?.code,
        await failure { try plainly { try database.purgeHistory() } }?.code,
        await failure { try await database.purgeHistory() }?.code,
      ]
    }
    #expect(await codes() == [nil, nil, nil, nil])
    // Something new, without which there is nothing to purge.
    try await database.reference(withPath: "a").setValue(2)
    disk.inject(.failure(of: .list, at: 1, with: EIO, isPermanent: true))
    #expect(await codes() == [.inputOutput, .inputOutput, .inputOutput, .inputOutput])
    disk.removeFaults()
    #expect(await codes() == [nil, nil, nil, nil])
    try await database.close()
    #expect(await codes() == [.closed, .closed, .closed, .closed])
  }

  @Test("a full disk takes back what did not fit, and works again once there is room")
  func diskFull() async throws {
    let handled = Shared<[String]>([])
    var options = DatabaseOptions()
    options.errorHandler = { error in handled.withLock { $0.append(error.name) } }
    let database = try open(options)
    let ref = database.reference()
    try await ref.setValue(1)
    let recorder = Recorder(database)
    recorder.listen("", ref, [.value])
    _ = await recorder.take()
    disk.inject(DiskFault(.error(ENOSPC), of: [.write, .preallocate], at: 1, isPermanent: true))
    #expect(await failure { try await ref.setValue(2) }?.code == .diskFull)
    #expect(await recorder.take() == ["value 2", "value 1"])
    plainly { ref.setValue(3) }
    #expect(await failure { try await ref.setValue(4) }?.code == .diskFull)
    await settle(database)
    #expect(handled.value == ["DiskFull"])
    disk.removeFaults()
    while await failure({ try await ref.setValue(5) }) != nil { await Task.yield() }
    #expect(try await ref.getData().int == 5)
    try await database.close()
    let reopened = try open()
    #expect(try await reopened.reference().getData().int == 5)
    try await reopened.close()
  }

  @Test("damage refuses to open, with file and offset, and changes nothing")
  func damageRefusesToOpen() async throws {
    do {
      let database = try open()
      for number in 0..<20 {
        try await database.reference().child("\(number)").setValue("some value")
      }
      try await database.close()
    }
    let log = try #require(disk.names(in: "/db").first { $0.hasSuffix(".log") })
    #expect(disk.flipBit(8 * 200, of: "/db/\(log)"))
    let before = disk.contents(of: "/db/\(log)")
    let error = await failure { _ = try open() }
    #expect(error?.code == .corrupt)
    #expect(error?.file?.hasSuffix(log) == true)
    #expect(error?.offset != nil)
    #expect(disk.contents(of: "/db/\(log)") == before)
  }
}
