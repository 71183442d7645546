extension WriteScratch {
  struct Entry {
    /// Where its stored path begins, and behind that its value.
    var start: Int
    var pathByteCount: Int
    var keyCount: Int
    var end = 0
    var kind: WriteKind

    func path(in bytes: UnsafeRawBufferPointer) -> UnsafeRawBufferPointer {
      UnsafeRawBufferPointer(rebasing: bytes[start..<start &+ pathByteCount])
    }
  }

  func beginEntry(_ path: String, _ kind: WriteKind) throws(ValidationError) -> Int {
    let start = bytes.count
    let room = bytes.room(for: Path.storedByteCountMax(path))
    let (byteCount, keyCount) = try Path.store(path, to: room)
    bytes.noteAppended(byteCount)
    entries.append(
      Entry(start: start, pathByteCount: byteCount, keyCount: keyCount, kind: kind))
    return keyCount
  }

  func beginEntry(_ path: Path, _ kind: WriteKind) {
    let start = bytes.count
    path.withStoredBytes { bytes.append($0) }
    entries.append(
      Entry(start: start, pathByteCount: path.storedBytes.count, keyCount: path.count, kind: kind))
  }

  func endEntry() {
    let last = entries.count &- 1
    let value = entries[last].start &+ entries[last].pathByteCount
    if entries[last].kind == .set {
      if bytes.count == value {
        entries[last].kind = .remove
      } else if becomesIncrement(from: value) {
        entries[last].kind = .increment
      }
    }
    entries[last].end = bytes.count
  }

  func cancelEntry() {
    guard let entry = entries.popLast() else { return }
    bytes.removeAfter(entry.start)
  }

  /// Makes a value that is nothing but a sum the value of an increment.
  func becomesIncrement(from value: Int) -> Bool {
    guard serverValueCount > 0 else { return false }
    let end = bytes.count
    let isSum = bytes.withMutableBytes { bytes in
      let start = bytes.baseAddress.unsafelyUnwrapped + value
      guard start.load(as: UInt8.self) == BodyTag.sum,
        BodyBytes.scalarEnd(start) - UnsafeRawPointer(start) == end &- value
      else { return false }
      start.copyMemory(from: start + 1, byteCount: end &- value &- 1)
      return true
    }
    guard isSum else { return false }
    bytes.removeAfter(end &- 1)
    serverValueCount &-= 1
    return true
  }

  // MARK: Order

  /// Puts the entries in the order of their paths; of one path the priority comes last.
  ///
  /// - Throws: if paths are in conflict, or too deep.
  func putEntriesInOrder(below base: Path) throws(ValidationError) {
    let entries = entries
    if entries.count > 1 {
      let sorted: [Entry]? = bytes.withBytes { bytes in
        let skipped = commonPrefix(bytes)
        return PrefixOrder.withSorted(
          entries.count, prefix: { Self.prefix(of: entries[$0], behind: skipped, bytes) },
          compare: { Self.compare(entries[$0], entries[$1], bytes) }
        ) { order in order.map { order in order.map { entries[Int($0.index)] } } }
      }
      if let sorted { self.entries = sorted }
    }
    guard isValid(below: base.count) else { throw problem(at: base) }
  }

  private static func compare(
    _ a: Entry, _ b: Entry, _ bytes: UnsafeRawBufferPointer
  ) -> Int {
    let order = Path.compareStored(a.path(in: bytes), b.path(in: bytes))
    if order != 0 || a.kind == b.kind { return order }
    return a.kind == .setPriority ? 1 : b.kind == .setPriority ? -1 : 0
  }

  /// What all paths begin with: so many bytes of whole keys, and so many of the ordered bytes of the key behind them.
  private func commonPrefix(
    _ bytes: UnsafeRawBufferPointer
  ) -> (wholeKeys: Int, ofKey: Int) {
    let first = entries[0].path(in: bytes)
    var shared = first.count
    for entry in entries {
      let path = entry.path(in: bytes)
      shared = min(shared, BodyWriter.sharedByteCount(first, path))
    }
    var wholeKeys = 0
    while wholeKeys < shared {
      let (keyByteCount, prefix) = Varint.readTrusted(
        first.baseAddress.unsafelyUnwrapped + wholeKeys)
      if wholeKeys + prefix + keyByteCount > shared { break }
      wholeKeys += prefix + keyByteCount
    }
    // The keys behind them may differ in their lengths, which come first.
    var ofKey = Int.max
    let firstKey = Self.key(of: first, at: wholeKeys)
    for entry in entries {
      let key = Self.key(of: entry.path(in: bytes), at: wholeKeys)
      ofKey = min(ofKey, BodyWriter.sharedByteCount(firstKey, key))
    }
    return (wholeKeys, ofKey)
  }

  /// The ordered bytes of the key that begins at an offset of a stored path; none at its end.
  private static func key(
    of path: UnsafeRawBufferPointer, at offset: Int
  ) -> UnsafeRawBufferPointer {
    guard offset < path.count else { return UnsafeRawBufferPointer(start: nil, count: 0) }
    let start = path.baseAddress.unsafelyUnwrapped + offset
    let (keyByteCount, prefix) = Varint.readTrusted(start)
    return UnsafeRawBufferPointer(start: start + prefix, count: keyByteCount)
  }

  private static func prefix(
    of entry: Entry, behind skipped: (wholeKeys: Int, ofKey: Int), _ bytes: UnsafeRawBufferPointer
  ) -> UInt64 {
    let key = key(of: entry.path(in: bytes), at: skipped.wholeKeys)
    var word: UInt64 = 0
    let end = min(key.count, skipped.ofKey &+ 8)
    guard skipped.ofKey < end else { return 0 }
    if end &- skipped.ofKey == 8 {
      return UInt64(bigEndian: key.loadUnaligned(fromByteOffset: skipped.ofKey, as: UInt64.self))
    }
    for offset in skipped.ofKey..<end { word = word &<< 8 | UInt64(key[offset]) }
    return word &<< UInt64(8 &* (8 &- (end &- skipped.ofKey)))
  }

  /// Whether no path is at or above another one, and none too deep. The entries are in order.
  private func isValid(below depth: Int) -> Bool {
    bytes.withBytes { bytes in
      var above: UnsafeRawBufferPointer?
      var lastPriority: UnsafeRawBufferPointer?
      for entry in entries {
        if depth + entry.keyCount > Limits.depth { return false }
        let path = entry.path(in: bytes)
        // Each key is preceded by its length, so a prefix in bytes is a prefix in keys. All paths below one
        // follow it without a gap.
        if let above, path.count >= above.count,
          BodyWriter.sharedByteCount(path, above) == above.count
        {
          return false
        }
        if entry.kind == .setPriority {
          if let lastPriority, lastPriority.count == path.count,
            BodyWriter.sharedByteCount(path, lastPriority) == path.count
          {
            return false
          }
          lastPriority = path
        } else {
          above = path
        }
      }
      return true
    }
  }

  /// What is wrong with an update that is not valid: said by the rules for writes that exist as values.
  private func problem(at base: Path) -> ValidationError {
    let list = bytes.withBytes { bytes in
      entries.map { entry -> Write.Entry in
        Write.Entry(
          path: Path(trusted: entry.path(in: bytes)),
          action: entry.kind == .setPriority ? .setPriority(nil) : .remove)
      }
    }
    do throws(ValidationError) {
      try Write.update(base, list).validate()
    } catch {
      return error
    }
    preconditionFailure("an update that is not valid has no error")
  }
}
