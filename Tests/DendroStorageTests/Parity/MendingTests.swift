import DendroTestSupport
import DendroTesting
import Testing

@testable import DendroStorage

@Suite("Parity: which damage is mended")
struct MendingTests {
  private static let size = ParityLayout.blockByteCount

  @Test("the widest stretch, wherever it begins, is mended", arguments: ParityDirectory.names)
  func anyStretch(name: String) throws {
    let files = try ParityDirectory()
    let layout = files.layout(of: name)
    #expect(name == ParityDirectory.last || layout.parityBlockCount > 2)
    let original = try #require(files.originals[name])
    #expect(try files.mending(of: name).state == .good)
    for block in 0..<Int(layout.blockCount) {
      for place in [0, 1, Self.size - 1] {
        let start = block * Self.size + place
        guard start < original.count else { continue }
        files.damage(name, start..<start + files.width(of: name))
        let hint: Comment = "\(name) from \(start) on"
        let mending = try files.mending(of: name)
        #expect(mending.state == .mends, hint)
        #expect(mending.damaged == mending.mended && mending.mended.count == 1, hint)
        #expect(try files.mended(name) == original, hint)
        #expect(files.disk.contents(of: root + "/" + name) != original, "nothing is changed")
        files.restore(name)
      }
    }
  }

  @Test("bytes that are cut off or zero are mended as well", arguments: ParityDirectory.names)
  func cutOff(name: String) throws {
    let files = try ParityDirectory()
    let original = try #require(files.originals[name])
    for count in [1, 100, Self.size, files.width(of: name)] where count <= files.width(of: name) {
      files.disk.resize(root + "/" + name, to: original.count - count)
      #expect(try files.mending(of: name).state == .mends, "\(count) bytes less")
      #expect(try files.mended(name) == original, "\(count) bytes less")
      files.restore(name)
      files.disk.overwrite(root + "/" + name, at: 0, with: Array(repeating: 0, count: count))
      #expect(try files.mended(name) == original, "\(count) zeros")
      files.restore(name)
    }
  }

  @Test("beyond the width, all is mended but the blocks whose others are hit")
  func wider() throws {
    let files = try ParityDirectory()
    for name in [ParityDirectory.segment, ParityDirectory.checkpoint] {
      let layout = files.layout(of: name)
      let count = Int(layout.parityBlockCount)
      let original = try #require(files.originals[name])
      for block in 0..<Int(layout.blockCount) - count - 1 {
        // One byte of the first block, and one of the first that has the same parity block.
        let start = (block + 1) * Self.size - 1
        files.damage(name, start..<start + (count - 1) * Self.size + 2)
        let mending = try files.mending(of: name)
        #expect(mending.state == .exceeded)
        #expect(mending.damagedBlockCount == count + 1)
        #expect(mending.mendedBlockCount == count - 1)
        let found = try files.mended(name)
        let lost = [block, block + count].map { $0 * Self.size..<($0 + 1) * Self.size }
        for index in original.indices where found[index] != original[index] {
          #expect(lost.contains { $0.contains(index) })
          if !lost.contains(where: { $0.contains(index) }) { break }
        }
        files.restore(name)
      }
      // All of it.
      files.damage(name, 0..<original.count)
      let mending = try files.mending(of: name)
      #expect(mending.state == .exceeded && mending.mendedBlockCount == 0)
      files.restore(name)
    }
  }

  @Test("a cut beyond the width leaves what can be mended in its place, zeros between")
  func longCut() throws {
    let files = try ParityDirectory()
    let name = ParityDirectory.checkpoint
    let layout = files.layout(of: name)
    let original = try #require(files.originals[name])
    let cut = Int(layout.blockCount - layout.parityBlockCount - 1) * Self.size
    files.disk.resize(root + "/" + name, to: cut)
    let mending = try files.mending(of: name)
    #expect(mending.state == .exceeded && mending.mendedBlockCount > 0)
    let found = try files.mended(name)
    #expect(found.count > cut && found.count < original.count + 1)
    for range in mending.mended {
      let range = Int(range.lowerBound)..<Int(range.upperBound)
      #expect(found[range] == original[range])
    }
    #expect(found[..<cut] == original[..<cut])
  }

  // MARK: The parity file

  @Test("each damaged byte of a parity file is known, and mends nothing wrongly")
  func damagedParity() throws {
    let files = try ParityDirectory()
    for name in ParityDirectory.names {
      let parityName = FileName.parityName(of: name)
      let parity = try #require(files.originals[parityName])
      let original = try #require(files.originals[name])
      let blocks = Int(files.layout(of: name).parityOffset)
      let places =
        Array(0..<blocks) + stride(from: blocks, to: parity.count, by: Scale.stride(509))
      for place in places {
        files.damage(parityName, place..<place + 1)
        let mending = try files.mending(of: name)
        #expect(mending.state == .damaged && !mending.problems.isEmpty, "\(name), byte \(place)")
        #expect(mending.mendedFile == nil)
        files.restore(parityName)
      }
      // Both at once.
      for place in stride(from: 0, to: parity.count, by: 97) {
        files.damage(parityName, place..<place + 1)
        files.damage(name, 10..<20)
        let mending = try files.mending(of: name)
        #expect(!mending.problems.isEmpty)
        let found = try files.mended(name)
        if mending.mendedBlockCount > 0 {
          #expect(found == original, "\(name), byte \(place)")
        } else {
          #expect(found == files.disk.contents(of: root + "/" + name))
        }
        let isFirstBlock = place >= blocks && place < blocks + Self.size
        #expect((mending.mendedBlockCount == 0) == (place < blocks || isFirstBlock))
        files.restore(parityName)
        files.restore(name)
      }
    }
  }

  @Test("a parity file that is cut off is known", arguments: ParityDirectory.names)
  func shortParity(name: String) throws {
    let files = try ParityDirectory()
    let parityName = FileName.parityName(of: name)
    let size = try #require(files.originals[parityName]?.count)
    for count in [0, 1, 119, 120, 121, 130, size / 2, size - 1] {
      files.disk.resize(root + "/" + parityName, to: count)
      #expect(try files.mending(of: name).state == .damaged, "\(count) bytes")
      files.restore(parityName)
    }
  }

  @Test("headers that lie with a right checksum are refused")
  func forgedHeaders() throws {
    let files = try ParityDirectory()
    let parityName = FileName.parityName(of: ParityDirectory.segment)
    let original = try #require(files.originals[parityName])
    for (place, value) in [(16, UInt64.max), (16, 0), (16, 1 << 50), (24, 7), (32, 9), (112, 1)] {
      var bytes = original
      let count = place == 112 ? 4 : 8
      withUnsafeBytes(of: value.littleEndian) {
        bytes.replaceSubrange(place..<place + count, with: $0.prefix(count))
      }
      forge(&bytes)
      files.disk.overwrite(root + "/" + parityName, at: 0, with: bytes)
      #expect(try files.mending(of: ParityDirectory.segment).state == .damaged, "\(place)")
      files.restore(parityName)
    }
    // A length and counts that agree, of a table that the file has no room for.
    var bytes = original
    let layout = ParityLayout(coveredByteCount: 1 << 62)
    for (place, value) in [
      (16, layout.coveredByteCount), (24, layout.blockCount), (32, layout.parityBlockCount),
    ] {
      withUnsafeBytes(of: value.littleEndian) { bytes.replaceSubrange(place..<place + 8, with: $0) }
    }
    forge(&bytes)
    files.disk.overwrite(root + "/" + parityName, at: 0, with: bytes)
    #expect(try files.mending(of: ParityDirectory.segment).state == .damaged)
    // A newer version.
    bytes = original
    bytes[8] = 2
    forge(&bytes)
    files.disk.overwrite(root + "/" + parityName, at: 0, with: bytes)
    #expect(try files.mending(of: ParityDirectory.segment).state == .damaged)
  }

  private func forge(_ bytes: inout [UInt8]) {
    let checksum = bytes[..<116].withUnsafeBytes { Checksum.short($0, seed: 0) }
    withUnsafeBytes(of: checksum.littleEndian) { bytes.replaceSubrange(116..<120, with: $0) }
  }

  @Test("what the medium does not give back is mended as well")
  func unreadable() throws {
    let files = try ParityDirectory()
    // All of a file of one block.
    let path = root + "/" + ParityDirectory.last
    files.disk.inject(
      DiskFault(
        .error(SystemError.inputOutput.code), of: [.read], at: 1, isPermanent: true,
        pathPart: ParityDirectory.last))
    // Its parity has its name in it.
    #expect(try files.mending(of: ParityDirectory.last).state == .damaged)
    files.disk.removeFaults()
    // Once only: the blocks are read again, each alone.
    for number in 1...12 {
      files.disk.inject(
        DiskFault(
          .error(SystemError.inputOutput.code), of: [.read], at: number,
          pathPart: ParityDirectory.checkpoint))
      let state = try files.mending(of: ParityDirectory.checkpoint).state
      #expect(state == .good || state == .mends || state == .damaged, "read \(number)")
      files.disk.removeFaults()
    }
    #expect(files.disk.contents(of: path) == files.originals[ParityDirectory.last])
  }
}
