import DendroStorage
import DendroTestSupport
import Foundation
import Testing

@testable import DendroCluster

@Suite("The file that says whose copy a directory has")
struct CopyFileTests {
  private let folder: TemporaryFolder
  private var path: String { folder.path + "/cluster" }
  private let databaseID = DatabaseID(high: 3, low: 4)

  init() throws { folder = try TemporaryFolder() }

  private func open(_ id: UInt8 = 1) throws -> CopyFile {
    try CopyFile(at: path, newID: Array(repeating: id, count: 16))
  }

  private func position(_ lsn: UInt64) throws -> LogPosition {
    let chain = LogChain(bytes: Array(repeating: UInt8(truncatingIfNeeded: lsn), count: 32))
    return LogPosition(lsn: LogSequenceNumber(lsn), chain: try #require(chain))
  }

  @Test("it keeps the server's name, the claim, and the last position")
  func keeps() throws {
    do {
      let file = try open()
      #expect(file.databaseID == nil)
      #expect(file.position == nil)
      try file.claim(databaseID)
      for lsn in UInt64(1)...9 { file.note(try position(lsn)) }
    }
    let file = try open(2)
    #expect(file.serverID == ServerID(bytes: Array(repeating: 1, count: 16)))
    #expect(file.databaseID == databaseID)
    #expect(try file.position == position(9))
    try file.claim(databaseID)
    #expect(try open().position == nil)
  }

  @Test("of a torn position the one before counts, at every offset")
  func torn() throws {
    do {
      let file = try open()
      try file.claim(databaseID)
      file.note(try position(1))
      file.note(try position(2))
    }
    let whole = try Data(contentsOf: URL(fileURLWithPath: path))
    var counts: [UInt64: Int] = [:]
    for offset in 64..<whole.count {
      var damaged = whole
      damaged[offset] ^= 0x40
      try damaged.write(to: URL(fileURLWithPath: path))
      let found = try open()
      #expect(found.databaseID == databaseID)
      let lsn = try #require(found.position).lsn
      #expect(try found.position == position(lsn.rawValue))
      counts[lsn.rawValue, default: 0] += 1
    }
    #expect(counts[1] == 48)
  }

  @Test("a file that was cut short while it was made is made again", arguments: [0, 1, 63, 191])
  func cutShort(count: Int) throws {
    _ = try open()
    let whole = try Data(contentsOf: URL(fileURLWithPath: path))
    try whole.prefix(count).write(to: URL(fileURLWithPath: path))
    #expect(try open(9).serverID == ServerID(bytes: Array(repeating: 9, count: 16)))
    #expect(try open(8).serverID == ServerID(bytes: Array(repeating: 9, count: 16)))
  }

  @Test("a file of a newer release is refused")
  func newer() throws {
    _ = try open()
    var bytes = try Data(contentsOf: URL(fileURLWithPath: path))
    bytes[8] = 2
    try bytes.write(to: URL(fileURLWithPath: path))
    #expect(throws: ClusterError.self) { try open() }
  }
}
