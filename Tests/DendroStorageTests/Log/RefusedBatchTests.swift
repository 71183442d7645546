import DendroTestSupport
import DendroTesting
import Testing

@testable import DendroStorage

/// An append that fails half way: its callers get an error, so nothing of it may come back.
@Suite("A refused batch")
struct RefusedBatchTests {
  /// A log of two durable records, and a batch of three of which so many bytes get in.
  private static func refused(_ byteCount: Int) throws -> (SimulatedDisk, DatabaseDirectory) {
    let disk = SimulatedDisk(seed: 1)
    let directory = try open(disk)
    let writer = try newLog(directory)
    for number in 1...2 { try writer.append(payload(number, 60)) }
    for number in 3...5 { try writer.stage(noise(60, seed: UInt64(number))) }
    disk.inject(DiskFault(.partial(byteCount, 5), of: [.write], at: 1))
    #expect(throws: StorageError.self) { try writer.write() }
    #expect(writer.poison != nil)
    #expect(throws: StorageError.self) { try writer.stage(payload(9)) }
    return (disk, directory)
  }

  @Test("no record of it is found when the log is opened again, however many bytes got in")
  func reopened() throws {
    for byteCount in stride(from: 1, through: 280, by: 3) {
      let (disk, directory) = try Self.refused(byteCount)
      directory.close()
      let log = try #require(try read(disk))
      #expect(log.lastLSN == 2, "\(byteCount) bytes")
    }
  }

  @Test("nor after a power loss")
  func powerLoss() throws {
    for byteCount in [1, 95, 190, 280] {
      let (disk, directory) = try Self.refused(byteCount)
      let point = disk.crashPoint()
      var count = 0
      point.forEachState { state in
        count += 1
        guard let log = try? read(point.disk(state)) else {
          Issue.record("\(byteCount) bytes, \(state)")
          return
        }
        #expect(log.lastLSN == 2, "\(byteCount) bytes, \(state)")
      }
      #expect(count > 0)
      directory.close()
    }
  }
}
