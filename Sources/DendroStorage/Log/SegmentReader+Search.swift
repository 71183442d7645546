extension SegmentReader {
  /// A crash leaves at most a batch and preallocated space. A longer tail is not searched, so that a hostile
  /// file cannot cause a hang.
  private static let tailByteLimit: UInt64 = 1 << 30

  /// What a search of the rest of the file found.
  struct Search {
    /// The end of the last byte that is not zero; the search's start if all are.
    var contentEnd: UInt64
    /// The highest durable-up-to of any valid header, at its own offset or displaced.
    var durableUpTo: LogSequenceNumber?
    /// The last write of any valid record.
    var lastSurvivor: LogSequenceNumber?
    /// The offset of the first valid header.
    var firstRecord: UInt64?
  }

  /// Searches every offset from `offset` to the end of the file for valid headers.
  ///
  /// - Complexity: linear in the bytes, also if they were made to look like headers: each offset costs at
  ///   most one header's checksum, and no length is followed.
  /// - `lsn`: the last write that was read, to find displaced records that prove a later one durable. Nil:
  ///   displaced records are not searched for.
  /// - `stopsAtFirst`: whether the search ends at the first valid header.
  func search(
    from offset: UInt64, after lsn: LogSequenceNumber?, stopsAtFirst: Bool = false
  ) throws(StorageError) -> Search {
    guard byteCount - min(offset, byteCount) <= Self.tailByteLimit else {
      throw .corrupt(
        path: path, offset: offset,
        expected:
          "at most \(Self.tailByteLimit) bytes behind the last record, more than a crash leaves",
        found: "\(byteCount - offset)")
    }
    var found = Search(contentEnd: offset)
    var displaced = lsn.map {
      DisplacedRecords(segment: header, after: $0, byteCount: byteCount - min(offset, byteCount))
    }
    var place = offset
    while place < byteCount {
      let (bytes, end) = try searchWindow(at: place)
      if bytes.isEmpty { break }
      if let last = lastNonZero(bytes, end) { found.contentEnd = place + UInt64(last) + 1 }
      var magics = ByteSearch(
        for: (RecordHeader.magic.0, RecordHeader.shortMagic), in: bytes, to: end)
      while let next = magics.next() {
        let candidate = UnsafeRawBufferPointer(rebasing: bytes[next...])
        switch RecordHeader.decode(
          candidate, offset: place + UInt64(next), segment: header)
        {
        case .invalid:
          if let durable = displaced?.durableUpTo(candidate, at: place + UInt64(next)) {
            found.durableUpTo = max(found.durableUpTo ?? .zero, durable)
          }
        case .valid(let record, _, _):
          if found.firstRecord == nil { found.firstRecord = place + UInt64(next) }
          found.durableUpTo = max(found.durableUpTo ?? .zero, record.durableUpTo)
          if record.count > 0 {
            found.lastSurvivor = max(found.lastSurvivor ?? .zero, record.lastLSN)
          }
          if stopsAtFirst { return found }
        }
      }
      place += UInt64(end)
    }
    return found
  }

  /// The bytes from `place` on, and up to where headers are searched for in them: one may reach over the window's
  /// end, so that the last bytes are searched with the next window.
  func searchWindow(
    at place: UInt64
  ) throws(StorageError) -> (bytes: UnsafeRawBufferPointer, end: Int) {
    let bytes = try bytes(at: place, count: Self.windowByteCount)
    let isLast = place + UInt64(bytes.count) >= byteCount
    return (bytes, isLast ? bytes.count : max(1, bytes.count - RecordHeader.byteCountMax))
  }

  /// Copies bytes of the file into another one, from `first` on.
  func copy(
    from start: UInt64, to end: UInt64, into target: any File, path targetPath: String,
    at first: UInt64 = 0
  ) throws(StorageError) {
    var place = start
    while place < end {
      let wanted = Int(min(end - place, UInt64(Self.windowByteCount)))
      let bytes = try bytes(at: place, count: wanted)
      if bytes.isEmpty {
        throw .corrupt(
          path: path, offset: place, expected: "bytes up to \(end), as before",
          found: "the end of the file")
      }
      let part = UnsafeRawBufferPointer(rebasing: bytes.prefix(wanted))
      try target.writeAll(part, at: first + (place - start), path: targetPath)
      place += UInt64(part.count)
    }
  }
}

// MARK: - Where another thread begins

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
  /// - Complexity: linear in the bytes up to it, as that of `search`.
  func restart(from offset: UInt64) throws(StorageError) -> RecordInfo? {
    var place = offset
    while place < byteCount {
      let (bytes, end) = try searchWindow(at: place)
      if bytes.isEmpty { break }
      var start = 0
      while let next = firstIndex(of: RecordHeader.magic.0, in: bytes, from: start, to: end) {
        start = next + 1
        let candidate = UnsafeRawBufferPointer(rebasing: bytes[next...])
        let offset = place + UInt64(next)
        guard
          case .valid(let record, let byteCount, let checksum) = RecordHeader.decode(
            candidate, offset: offset, segment: header), record.isRestart
        else { continue }
        return RecordInfo(
          header: record, segment: name, offset: offset, headerByteCount: byteCount,
          checksum: checksum)
      }
      place += UInt64(end)
    }
    return nil
  }
}
