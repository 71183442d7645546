import CDendroLZ4
import Foundation

/// What the machine could do at most with the bytes of small sets.
enum PhysicalLimits {
  /// Copies keys and values to where they stay.
  static let copying = Contestant("memcpy of keys and values") { turn in
    let entries = PostSets(count: turn.scaled(400_000)).entries
    let copy = UnsafeMutableRawBufferPointer.allocate(
      byteCount: entries.byteCount, alignment: 16)
    copy.initializeMemory(as: UInt8.self, repeating: 0)
    defer { copy.deallocate() }
    var end = 0
    let measurement = try Measurement.blocking(entries.count) {
      for index in 0..<entries.count {
        for part in 0..<2 {
          let bytes = part == 0 ? entries.key(index) : entries.value(index)
          UnsafeMutableRawBufferPointer(rebasing: copy[end...]).copyMemory(from: bytes)
          end += bytes.count
        }
      }
    }
    try expect(end == entries.byteCount, "every byte is copied")
    return measurement
  }

  /// Compresses keys and values as they lie beside each other, in blocks of 64 KiB.
  static let compressing = Contestant("LZ4 of keys and values") { turn in
    let entries = PostSets(count: turn.scaled(400_000)).entries
    let blockByteCount = 1 << 16
    let room = UnsafeMutableRawBufferPointer.allocate(
      byteCount: Int(LZ4_compressBound(Int32(blockByteCount))), alignment: 16)
    defer { room.deallocate() }
    let all = entries.allBytes
    var compressedByteCount = 0
    let measurement = try Measurement.blocking(entries.count) {
      for start in stride(from: 0, to: all.count, by: blockByteCount) {
        let block = Bytes(rebasing: all[start..<min(all.count, start + blockByteCount)])
        let count = LZ4_compress_default(
          block.characters, room.baseAddress?.assumingMemoryBound(to: CChar.self),
          Int32(block.count), Int32(room.count))
        try expect(count > 0, "the block is compressed")
        compressedByteCount += Int(count)
      }
    }
    return measurement.adding(
      "compressed", "bytes a leaf", Double(compressedByteCount) / Double(entries.count))
  }
}

extension Entries {
  fileprivate var allBytes: Bytes {
    Bytes(start: count == 0 ? nil : key(0).baseAddress, count: byteCount)
  }

  fileprivate var byteCount: Int {
    (0..<count).reduce(0) { $0 + key($1).count + value($1).count }
  }
}
