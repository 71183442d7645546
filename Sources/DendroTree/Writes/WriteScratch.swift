import Synchronization

/// The memory in which a `WriteBuilder` works, used again by the next one. One builder has it at a time.
///
/// Unchecked `Sendable`: the pool passes it from one builder to the next under a lock.
final class WriteScratch: @unchecked Sendable {
  /// The values; for an update, the stored path and the value of each entry, as they were added.
  let bytes = PayloadBuffer(capacity: 1024)
  /// The body of an update: its entries in order.
  private let body = PayloadBuffer(capacity: 1024)
  @exclusivity(unchecked) var trees: [Node] = []
  @exclusivity(unchecked) var serverValueCount = 0
  @exclusivity(unchecked) private var entries: [Entry] = []
  /// The children of the branches that are open, the innermost last.
  @exclusivity(unchecked) private var children: [Child] = []
  /// Room to put children in order.
  @exclusivity(unchecked) private var sorted: [UInt8] = []

  private struct Entry {
    /// Where its stored path begins, and behind that its value.
    var start: Int
    var pathByteCount: Int
    var keyCount: Int
    var end = 0
    var kind: WriteKind
  }

  private struct Child {
    /// The first eight bytes of the key: most keys differ in them.
    var prefix: UInt64
    /// Where the stored key begins, and behind that the value.
    var start: Int
    var keyEnd: Int
    var end = 0
  }

  // MARK: The pool

  private static let pool = Mutex<[WriteScratch]>([])
  private static let pooledCountMax = 8

  static func take() -> WriteScratch { pool.withLock { $0.popLast() } ?? WriteScratch() }

  static func giveBack(_ scratch: WriteScratch) {
    scratch.removeAll()
    pool.withLock { if $0.count < pooledCountMax { $0.append(scratch) } }
  }

  /// Arrays that a large write has grown beyond this many elements are freed.
  private static let keptCapacityMax = 1 << 14

  private func removeAll() {
    bytes.removeAll()
    body.removeAll()
    serverValueCount = 0
    if !trees.isEmpty { trees = [] }
    entries.removeAll(keepingCapacity: entries.capacity <= Self.keptCapacityMax)
    children.removeAll(keepingCapacity: children.capacity <= Self.keptCapacityMax)
    if sorted.count > 64 * Self.keptCapacityMax { sorted = [] }
  }

  // MARK: Children

  var childCount: Int { children.count }

  func removeChildren(from first: Int) { children.removeLast(children.count - first) }

  func beginChild(_ key: String) -> Bool {
    var key = key
    return key.withUTF8 { utf8 in
      let utf8 = UnsafeRawBufferPointer(utf8)
      let start = bytes.count
      bytes.append(roomFor: PathParser.storedByteCountMax(ofTextOf: utf8.count)) {
        PathParser(utf8).parseKey(into: $0)
      }
      let keyEnd = bytes.count
      if keyEnd == start { return false }
      children.append(Child(prefix: prefix(start, keyEnd), start: start, keyEnd: keyEnd))
      return true
    }
  }

  /// The first eight bytes of the stored key between two offsets, as a number that compares as they do.
  private func prefix(_ start: Int, _ end: Int) -> UInt64 {
    bytes.withBytes { bytes in
      let key = start &+ (bytes[start] < 0x80 ? 1 : 2)
      let count = end &- key
      if end >= 8 {
        // The eight bytes that end with the key's eighth or last one: what precedes the key is shifted out.
        let last = min(end, key &+ 8)
        if last >= 8 {
          let word = UInt64(
            bigEndian: bytes.loadUnaligned(fromByteOffset: last &- 8, as: UInt64.self))
          return count >= 8 ? word : word &<< UInt64(8 &* (8 &- count))
        }
      }
      var word: UInt64 = 0
      for offset in key..<min(end, key &+ 8) { word = word &<< 8 | UInt64(bytes[offset]) }
      return count >= 8 ? word : word &<< UInt64(8 &* (8 &- count))
    }
  }

  func endChild() -> Bool {
    let last = children.count &- 1
    let end = bytes.count
    if end == children[last].keyEnd {
      bytes.removeAfter(children[last].start)
      children.removeLast()
      return false
    }
    children[last].end = end
    return true
  }

  /// - Returns: whether there are children.
  func endBranch(countOffset: Int, firstChild: Int) -> Bool {
    var count = children.count &- firstChild
    guard count > 0 else { return false }
    if sortChildren(from: firstChild) {
      count = children.count &- firstChild
      layOutChildren(from: firstChild)
    }
    children.removeLast(count)
    setCount(count, at: countOffset)
    return true
  }

  /// - Returns: whether the children were in another order, or some were dropped.
  private func sortChildren(from first: Int) -> Bool {
    bytes.withBytes { bytes in
      var isSorted = true
      var hasTwice = false
      children.withUnsafeMutableBufferPointer { all in
        let list = UnsafeMutableBufferPointer(rebasing: all[first...])
        if list.count <= 24 {
          for index in list.indices.dropFirst()
          where Self.precedes(list[index], list[index - 1], bytes) {
            let child = list[index]
            var place = index
            repeat {
              list[place] = list[place &- 1]
              place &-= 1
            } while place > 0 && Self.precedes(child, list[place &- 1], bytes)
            list[place] = child
            isSorted = false
          }
        } else {
          isSorted = false
          var list = list
          list.sort { Self.precedes($0, $1, bytes) }
        }
        for index in list.indices.dropFirst()
        where list[index].prefix == list[index &- 1].prefix
          && Self.compareKeys(list[index &- 1], list[index], bytes) == 0
        {
          hasTwice = true
        }
      }
      if hasTwice { dropRepeated(from: first, bytes) }
      return !isSorted || hasTwice
    }
  }

  /// Equal keys go by their places: the last one counts.
  @inline(__always)
  private static func precedes(
    _ a: Child, _ b: Child, _ bytes: UnsafeRawBufferPointer
  ) -> Bool {
    if a.prefix != b.prefix { return a.prefix < b.prefix }
    let order = compareKeys(a, b, bytes)
    return order != 0 ? order < 0 : a.start < b.start
  }

  private static func compareKeys(
    _ a: Child, _ b: Child, _ bytes: UnsafeRawBufferPointer
  ) -> Int {
    let start = bytes.baseAddress.unsafelyUnwrapped
    let (aCount, aPrefix) = Varint.readTrusted(start + a.start)
    let (bCount, bPrefix) = Varint.readTrusted(start + b.start)
    return compareBytes(start + (a.start + aPrefix), aCount, start + (b.start + bPrefix), bCount)
  }

  private func dropRepeated(from first: Int, _ bytes: UnsafeRawBufferPointer) {
    var kept = Array(children[..<first])
    for index in first..<children.count
    where index == children.count - 1
      || Self.compareKeys(children[index], children[index + 1], bytes) != 0
    {
      kept.append(children[index])
    }
    children = kept
  }

  /// Puts the bytes of the children into the order of their list.
  private func layOutChildren(from first: Int) {
    var start = Int.max
    var end = 0
    for index in first..<children.count {
      start = min(start, children[index].start)
      end = max(end, children[index].end)
    }
    let byteCount = end &- start
    if sorted.count < byteCount { sorted = [UInt8](repeating: 0, count: 2 &* byteCount) }
    let used = bytes.withMutableBytes { bytes in
      sorted.withUnsafeMutableBytes { sorted in
        var offset = 0
        let from = UnsafeRawPointer(bytes.baseAddress.unsafelyUnwrapped)
        let to = sorted.baseAddress.unsafelyUnwrapped
        for index in first..<children.count {
          let child = children[index]
          let count = child.end &- child.start
          (to + offset).copyMemory(from: from + child.start, byteCount: count)
          offset &+= count
        }
        (bytes.baseAddress.unsafelyUnwrapped + start).copyMemory(from: to, byteCount: offset)
        return offset
      }
    }
    bytes.removeAfter(start &+ used)
  }

  /// Stores a count where there is room for one byte.
  private func setCount(_ count: Int, at offset: Int) {
    let extra = Varint.byteCount(count) &- 1
    let end = bytes.count
    if extra > 0 { bytes.append(roomFor: extra) { _ in extra } }
    bytes.withMutableBytes { bytes in
      let place = bytes.baseAddress.unsafelyUnwrapped + offset
      if extra > 0 {
        (place + 1 + extra).copyMemory(from: place + 1, byteCount: end &- offset &- 1)
      }
      _ = Varint.write(count, to: place)
    }
  }

  // MARK: Entries

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
  private func becomesIncrement(from value: Int) -> Bool {
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

  // MARK: Finishing

  private func finishSet() -> (WriteKind, WriteFacts) {
    var facts = WriteFacts()
    if bytes.count == 0 {
      facts.removalCount = 1
      return (.remove, facts)
    }
    let isIncrement = becomesIncrement(from: 0)
    facts.hasServerValues = serverValueCount > 0
    return (isIncrement ? .increment : .set, facts)
  }

  private func finishPriority() -> WriteFacts {
    var facts = WriteFacts()
    facts.hasServerValues = serverValueCount > 0
    body.append(bytes.count == 0 ? 0 : 1)
    body.append(bytes)
    return facts
  }

  private func finishUpdate(at base: Path) throws(ValidationError) -> WriteFacts {
    sortEntries()
    guard isValid(below: base.count) else { throw problem(at: base) }
    var facts = WriteFacts()
    facts.entryCount = entries.count
    facts.hasServerValues = serverValueCount > 0
    body.appendVarint(entries.count)
    bytes.withBytes { bytes in
      var previous = UnsafeRawBufferPointer(start: nil, count: 0)
      for entry in entries {
        if entry.kind == .remove { facts.removalCount &+= 1 }
        if entry.kind == .setPriority { facts.isOrdered = false }
        let path = Self.path(of: entry, bytes)
        let shared = BodyWriter.sharedByteCount(path, previous)
        previous = path
        // The rest of the path and the value lie behind each other.
        let rest = entry.end &- entry.start &- shared
        body.append(roomFor: rest &+ 13) { target in
          target.storeBytes(of: entry.kind.rawValue, as: UInt8.self)
          let counts = Varint.write(path.count &- shared, to: Varint.write(shared, to: target + 1))
          counts.copyMemory(
            from: bytes.baseAddress.unsafelyUnwrapped + (entry.start &+ shared), byteCount: rest)
          return counts + rest - target
        }
      }
    }
    return facts
  }

  /// The bytes of a set from which on its pages are made before it is admitted.
  private static let builtByteMin = 4 << 10

  func withSet<R>(at path: Path, _ use: (WriteView) -> R) -> R {
    let (kind, facts) = finishSet()
    if kind == .set, bytes.count >= Self.builtByteMin, !facts.hasServerValues, trees.isEmpty {
      return bytes.withBytes { EncodedWrite(setting: $0, at: path) }.withView(use)
    }
    return withView(kind, at: path, bytes, facts, use)
  }

  func withPriority<R>(at path: Path, _ use: (WriteView) -> R) -> R {
    withView(.setPriority, at: path, body, finishPriority(), use)
  }

  func withUpdate<R>(
    at base: Path, _ use: (WriteView) -> R
  ) throws(ValidationError) -> R {
    withView(.update, at: base, body, try finishUpdate(at: base), use)
  }

  private func withView<R>(
    _ kind: WriteKind, at path: Path, _ body: PayloadBuffer, _ facts: WriteFacts,
    _ use: (WriteView) -> R
  ) -> R {
    if trees.isEmpty {
      return path.storedBytes.withUnsafeBytes { path in
        body.withBytes { use(WriteView(kind, at: path, body: $0, facts: facts)) }
      }
    }
    let copy = PayloadBuffer(capacity: body.count)
    copy.append(body)
    return EncodedWrite(kind, at: path, body: copy, trees: trees, facts: facts).withView(use)
  }

  private static func path(
    of entry: Entry, _ bytes: UnsafeRawBufferPointer
  ) -> UnsafeRawBufferPointer {
    UnsafeRawBufferPointer(
      rebasing: bytes[entry.start..<entry.start &+ entry.pathByteCount])
  }

  /// Of one path the priority comes last.
  private static func precedes(
    _ a: Entry, _ b: Entry, _ bytes: UnsafeRawBufferPointer
  ) -> Bool {
    let (x, y) = (path(of: a, bytes), path(of: b, bytes))
    if Path.storedBytes(x, precede: y) { return true }
    guard a.kind != b.kind, a.pathByteCount == b.pathByteCount else { return false }
    return a.kind != .setPriority && b.kind == .setPriority && !Path.storedBytes(y, precede: x)
  }

  private func sortEntries() {
    let isSorted = bytes.withBytes { bytes in
      entries.withUnsafeMutableBufferPointer { entries in
        Self.sort(entries, bytes, atMost: 4 * entries.count)
      }
    }
    if !isSorted { sortByPrefixes() }
  }

  /// An entry by eight bytes of its path, in which most differ.
  private struct SortKey {
    let prefix: UInt64
    let index: Int32
  }

  /// Sorts many entries: numbers are compared, and paths only where these are equal.
  private func sortByPrefixes() {
    bytes.withBytes { bytes in
      var keys: [SortKey] = []
      keys.reserveCapacity(entries.count)
      let skipped = commonPrefix(bytes)
      for (index, entry) in entries.enumerated() {
        let prefix = Self.prefix(of: entry, behind: skipped, bytes)
        keys.append(SortKey(prefix: prefix, index: Int32(index)))
      }
      let entries = entries
      keys.sort { a, b in
        a.prefix != b.prefix
          ? a.prefix < b.prefix
          : Self.precedes(entries[Int(a.index)], entries[Int(b.index)], bytes)
      }
      self.entries = keys.map { entries[Int($0.index)] }
    }
  }

  /// What all paths begin with: so many bytes of whole keys, and so many of the ordered bytes of the key behind them.
  private func commonPrefix(
    _ bytes: UnsafeRawBufferPointer
  ) -> (wholeKeys: Int, ofKey: Int) {
    let first = Self.path(of: entries[0], bytes)
    var shared = first.count
    for entry in entries {
      let path = Self.path(of: entry, bytes)
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
      let key = Self.key(of: Self.path(of: entry, bytes), at: wholeKeys)
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
    let key = key(of: path(of: entry, bytes), at: skipped.wholeKeys)
    var word: UInt64 = 0
    let end = min(key.count, skipped.ofKey &+ 8)
    guard skipped.ofKey < end else { return 0 }
    if end &- skipped.ofKey == 8 {
      return UInt64(bigEndian: key.loadUnaligned(fromByteOffset: skipped.ofKey, as: UInt64.self))
    }
    for offset in skipped.ofKey..<end { word = word &<< 8 | UInt64(key[offset]) }
    return word &<< UInt64(8 &* (8 &- (end &- skipped.ofKey)))
  }

  /// Sorts by insertion with at most so many moves: most updates are nearly in order.
  ///
  /// - Returns: false if it takes more; the entries are in some order then.
  private static func sort(
    _ entries: UnsafeMutableBufferPointer<Entry>, _ bytes: UnsafeRawBufferPointer,
    atMost moveMax: Int
  ) -> Bool {
    var moveCount = 0
    for index in entries.indices.dropFirst()
    where precedes(entries[index], entries[index - 1], bytes) {
      let entry = entries[index]
      var place = index
      repeat {
        entries[place] = entries[place - 1]
        place -= 1
      } while place > 0 && precedes(entry, entries[place - 1], bytes)
      entries[place] = entry
      moveCount += index - place
      if moveCount > moveMax { return false }
    }
    return true
  }

  /// Whether no path is at or above another one, and none too deep. The entries are in order.
  private func isValid(below depth: Int) -> Bool {
    bytes.withBytes { bytes in
      var above: UnsafeRawBufferPointer?
      var lastPriority: UnsafeRawBufferPointer?
      for entry in entries {
        if depth + entry.keyCount > Limits.depth { return false }
        let path = Self.path(of: entry, bytes)
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
          path: Path(trusted: Self.path(of: entry, bytes)),
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
