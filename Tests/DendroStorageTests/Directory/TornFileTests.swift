import DendroTestSupport
import DendroTesting
import Testing

@testable import DendroStorage

@Suite("Files of bytes that recoveries cut")
struct TornFileTests {
  private static func tear(_ disk: SimulatedDisk, _ round: Int) throws {
    let (directory, writer, _) = try resume(disk)
    try writer.append(payload(round, 60))
    let path = segmentPath(writer.segment.firstLSN.rawValue)
    directory.close()
    disk.overwrite(
      path, at: try #require(disk.contents(of: path)).count, with: noise(30, seed: UInt64(round)))
  }

  private static func tornFiles(_ disk: SimulatedDisk) -> [String] {
    disk.names(in: root).filter { $0.contains(".torn-") }
  }

  @Test("the newest are kept, and no more than sixteen")
  func bounded() throws {
    let disk = SimulatedDisk(seed: 1)
    try newLog(open(disk)).close()
    var last = ""
    for round in 1...40 {
      try Self.tear(disk, round)
      let (directory, _, log) = try resume(disk)
      last = try #require(log.end.tornFile)
      #expect(Self.tornFiles(disk).contains(last))
      directory.close()
      #expect(Self.tornFiles(disk).count == min(round, DatabaseDirectory.tornFileCountMax))
    }
    #expect(!Self.tornFiles(disk).isEmpty && !last.isEmpty)
  }

  @Test("those of removed segments go with them")
  func ofRemovedSegments() throws {
    let disk = SimulatedDisk(seed: 1)
    try newLog(open(disk)).close()
    try Self.tear(disk, 1)
    let (directory, writer, _) = try resume(disk)
    try writer.roll(time: 0)
    try writer.append(payload(2, 60))
    #expect(Self.tornFiles(disk).count == 1)
    try directory.pruneTornFiles(before: SegmentName(firstLSN: LogSequenceNumber(1)))
    #expect(Self.tornFiles(disk).count == 1)
    try directory.pruneTornFiles(before: SegmentName(firstLSN: LogSequenceNumber(2)))
    #expect(Self.tornFiles(disk).isEmpty)
    directory.close()
  }
}
