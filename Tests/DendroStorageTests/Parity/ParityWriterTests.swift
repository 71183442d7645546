import DendroTestSupport
import DendroTesting
import Testing

@testable import DendroStorage

@Suite("Parity: what is written, and when it counts")
struct ParityWriterTests {
  private static let size = ParityLayout.blockByteCount

  @Test("parity block j is the sum of the blocks j, j + N, j + 2N, …, whatever a pass makes of it")
  func formula() throws {
    let files = try ParityDirectory()
    for name in ParityDirectory.names {
      let layout = files.layout(of: name)
      var bytes = try #require(files.originals[name])
      #expect(layout.blockCount == UInt64((bytes.count + 4095) / 4096))
      #expect(layout.parityBlockCount == (layout.blockCount + 15) / 16)
      bytes += Array(repeating: 0, count: Int(layout.blockCount) * Self.size - bytes.count)
      let parity = try #require(files.originals[FileName.parityName(of: name)])
      #expect(UInt64(parity.count) == layout.byteCount)
      for number in 0..<Int(layout.parityBlockCount) {
        var sum = [UInt8](repeating: 0, count: Self.size)
        for block in stride(
          from: number, to: Int(layout.blockCount), by: Int(layout.parityBlockCount))
        {
          for index in 0..<Self.size { sum[index] ^= bytes[block * Self.size + index] }
        }
        let start = Int(layout.offset(ofParityBlock: UInt64(number)))
        #expect(Array(parity[start..<start + Self.size]) == sum, "\(name), \(number)")
      }
      for runBlockCount in 1...4 as ClosedRange<UInt64> {
        let writer = try ParityWriter(
          of: name, in: files.directory, runBlockCount: runBlockCount)
        #expect(try writer.write(in: files.directory) == UInt64(parity.count))
        #expect(files.disk.contents(of: root + "/" + FileName.parityName(of: name)) == parity)
      }
    }
  }

  @Test("parity that is older than its file covers its beginning")
  func stale() throws {
    let disk = SimulatedDisk()
    let directory = try open(disk)
    let log = try newLog(directory)
    for number in 1...20 { try log.append(noise(3000, seed: UInt64(number))) }
    let name = ParityDirectory.segment
    try directory.writeParity(of: name)
    #expect(try directory.hasCurrentParity(of: name))
    for number in 21...30 { try log.append(noise(3000, seed: UInt64(number))) }
    #expect(try !directory.hasCurrentParity(of: name))
    let path = root + "/" + name
    let whole = try #require(disk.contents(of: path))
    var mending = try Mending(of: name, in: directory)
    #expect(mending.state == .stale && mending.coveredByteCount ?? 0 > 60_000)
    // The last block that it covers, which has grown.
    let place = Int(mending.coveredByteCount ?? 0) - 5
    disk.overwrite(path, at: place, with: whole[place..<place + 5].map(~))
    mending = try Mending(of: name, in: directory)
    #expect(mending.state == .mends)
    let mended = try directory.mended(by: [mending])
    let file = try mended.fileSystem.open(at: path, .read)
    var bytes = [UInt8](repeating: 0, count: whole.count)
    _ = try bytes.withUnsafeMutableBytes { try file.readFully(into: $0, at: 0, path: path) }
    #expect(bytes == whole)
    // It is not replaced by that of the damaged bytes: it may mend them.
    disk.overwrite(path, at: 5000, with: [1, 2, 3, 4, 5])
    #expect(throws: StorageError.self) { try directory.writeParity(of: name) }
    disk.overwrite(path, at: 5000, with: Array(whole[5000..<5005]))
    disk.resize(path, to: 50_000)
    #expect(throws: StorageError.self) { try directory.writeParity(of: name) }
    #expect(try Mending(of: name, in: directory).coveredByteCount == mending.coveredByteCount)
    #expect(try directory.contents().temporaries == [])
  }

  @Test("parity goes before its file is replaced, and is of no use for another one")
  func replaced() throws {
    let files = try ParityDirectory()
    let name = ParityDirectory.checkpoint
    let parityName = FileName.parityName(of: name)
    let writer = try CheckpointWriter.begin(
      files.directory, databaseID: DatabaseID(high: 1, low: 2), lsn: LogSequenceNumber(40),
      time: 1234, logChecksum: 0)
    try writer.finish(leafCount: 0, contentHash: 1)
    #expect(!files.disk.exists(root + "/" + parityName))
    // As if it had stayed.
    let file = try files.disk.open(root + "/" + parityName, .create)
    _ = file
    files.disk.overwrite(root + "/" + parityName, at: 0, with: files.originals[parityName] ?? [])
    let mending = try files.mending(of: name)
    #expect(mending.state == .other && mending.mendedFile == nil)
    #expect(try !files.directory.hasCurrentParity(of: name))
    // That of a present file is written in its place.
    try files.directory.writeParity(of: name)
    #expect(try files.mending(of: name).state == .good)
  }

  @Test("records that were written in place of others are not changed back")
  func takenBack() throws {
    let files = try ParityDirectory()
    let name = ParityDirectory.segment
    let path = root + "/" + name
    // The same header, and other records from the 30th on.
    let other = SimulatedDisk()
    let directory = try open(other)
    let log = try newLog(directory)
    for number in 1...40 {
      try log.append(noise(3500, seed: UInt64(number < 30 ? number : 500 + number)))
    }
    try log.close()
    // The salt is drawn: the same of a disk with the same seed.
    let bytes = try #require(other.contents(of: path))
    let original = try #require(files.originals[name])
    #expect(bytes[..<64] == original[..<64])
    files.disk.overwrite(path, at: 0, with: bytes)
    #expect(try files.mending(of: name).state == .other)
    // Nor if some of them are damaged besides.
    for place in [70, 50_000, 110_000, 139_000] {
      files.disk.overwrite(path, at: place, with: [9, 8, 7, 6, 5, 4])
      let mending = try files.mending(of: name)
      #expect(mending.state == .other && mending.mendedFile == nil, "byte \(place)")
    }
  }

  @Test("parity goes with its file; what is left of it by a crash is removed")
  func removal() throws {
    let files = try ParityDirectory()
    let directory = files.directory
    #expect(try directory.contents().parityFiles.count == 3)
    #expect(try directory.contents().foreign == [])
    try directory.removeSegment(SegmentName(firstLSN: LogSequenceNumber(1)))
    try directory.removeCheckpoint(LogSequenceNumber(40))
    #expect(
      try directory.contents().parityFiles == [FileName.parityName(of: ParityDirectory.last)])
    try files.disk.remove(root + "/" + ParityDirectory.last)
    #expect(try directory.contents().orphanedParityFiles.count == 1)
    try directory.removeOrphanedParity()
    #expect(try directory.contents().parityFiles == [])
    _ = try files.disk.open(root + "/" + ParityDirectory.last + ".parity.tmp", .create)
    _ = try files.disk.open(root + "/notes.parity", .create)
    _ = try files.disk.open(root + "/" + ParityDirectory.last + ".parity.parity", .create)
    directory.close()
    let again = try open(files.disk)
    #expect(try again.contents().temporaries == [])
    #expect(try again.contents().foreign.count == 2)
  }

  @Test("parity appears whole: a crash at any call leaves none, or an unfinished file")
  func killed() throws {
    var callCount = 0
    var isComplete = false
    while !isComplete {
      let disk = SimulatedDisk()
      let directory = try open(disk)
      let log = try newLog(directory)
      for number in 1...20 { try log.append(noise(3000, seed: UInt64(number))) }
      let name = ParityDirectory.segment
      disk.disconnect(after: callCount)
      do throws(StorageError) {
        try directory.writeParity(of: name)
        isComplete = true
      } catch {}
      let left = disk.copy()
      let again = try open(left)
      #expect(try again.contents().temporaries == [])
      for mending in try again.mendings() { #expect(mending.state == .good) }
      if isComplete { #expect(try again.mendings().count == 1) }
      for point in disk.crashPoints().suffix(1) {
        point.forEachState { state in
          let crashed = point.disk(state)
          do {
            for mending in try open(crashed).mendings() { #expect(mending.state == .good) }
          } catch {
            Issue.record("\(error)")
          }
        }
      }
      callCount += 1
    }
    #expect(callCount > 8)
  }
}
