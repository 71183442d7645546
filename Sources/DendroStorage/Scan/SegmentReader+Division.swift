// Where another thread begins.

extension SegmentReader {
  /// Where two threads that read from `offset` on share the records: of preallocated space, which is zero, nothing
  /// counts. The second one gets three fifths, since to pass over a record takes less than to visit it.
  ///
  /// - Complexity: O(log(bytes behind the offset)) reads.
  func divide(behind offset: UInt64) throws(StorageError) -> UInt64 {
    var (low, high) = (offset, byteCount)
    if try isZero(at: max(low, high - min(high, UInt64(Self.probeByteCount)))) {
      while high - low > 128 * 1024 {
        let probe = low + (high - low) / 2
        if try isZero(at: probe) { high = probe } else { low = probe }
      }
    } else {
      low = high
    }
    return offset + (low - offset) * 2 / 5
  }

  private static var probeByteCount: Int { 4096 }

  private func isZero(at offset: UInt64) throws(StorageError) -> Bool {
    let bytes = try bytes(at: offset, count: Self.probeByteCount)
    return lastNonZero(bytes, min(bytes.count, Self.probeByteCount)) == nil
  }

  /// The first record from `offset` on with which decompression can begin; nil if there is none.
  ///
  /// - Complexity: linear in the bytes up to it.
  func restart(from offset: UInt64) throws(StorageError) -> RecordInfo? {
    var restart: RecordInfo?
    try lookForRecords(from: offset) { (bytes, place) throws(StorageError) in
      guard
        case .valid(let record, let byteCount, let checksum) = RecordHeader.decode(
          bytes, offset: place, segment: header), record.isRestart
      else { return .next }
      restart = RecordInfo(
        header: record, segment: name, offset: place, headerByteCount: byteCount,
        checksum: checksum)
      return .stop
    }
    return restart
  }
}
