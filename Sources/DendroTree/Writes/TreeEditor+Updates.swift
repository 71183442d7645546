// Updates: their entries are applied in the order of their paths.
extension TreeEditor {
  @usableFromInline
  mutating func applyUpdate(_ write: WriteView, _ note: Noting) {
    precondition(!write.facts.hasServerValues, Self.unresolved)
    let base = write.path
    precondition(base.count <= EntryReader.pathByteCountMax, Self.tooLong)
    removalCount = write.facts.removalCount
    page = tree.takeBranch()
    defer { putBack() }
    finishRun(note)
    forget()
    if let start = base.baseAddress { path.copyMemory(from: start, byteCount: base.count) }
    if write.facts.isOrdered {
      applyInOrder(write, note)
    } else {
      applySorted(write, note)
    }
    forget()
  }

  private mutating func applyInOrder(_ write: WriteView, _ note: Noting) {
    let value = Value(write.owner, write.facts)
    var entries = EntryReader(write.body, path: path, baseByteCount: write.path.count)
    while failure == nil, entries.advance() {
      if entries.sharedByteCount < branchByteCount { forget() }
      if entries.kind == .set, entries.remaining > 0, applyRun(&entries, note) { continue }
      change(entries.kind, at: entries.wholePath, &entries.next, value, note)
    }
  }

  /// Applies the set of a short leaf and those of its siblings that follow.
  ///
  /// - Returns: false if they are no run; nothing was done then.
  private mutating func applyRun(_ entries: inout EntryReader, _ note: Noting) -> Bool {
    guard BodyBytes.shortLeafByteCount(entries.next) > 0,
      let parentByteCount = runParentByteCount(of: entries.wholePath)
    else { return false }
    var ahead = entries
    ahead.skipValue()
    guard ahead.siblingByteCount(below: parentByteCount) > 0,
      beginRun(entries.wholePath, below: parentByteCount, entries.next)
    else { return false }
    repeat {
      entries = ahead
      guard case let byteCount = entries.siblingByteCount(below: parentByteCount), byteCount > 0,
        run.hasRoom(for: byteCount), ahead.advance(), addToRun(ahead.wholePath, ahead.next)
      else { break }
      ahead.skipValue()
    } while true
    finishRun(note)
    return true
  }

  /// One entry of an update that is not in order.
  private struct Entry {
    let path: [UInt8]
    let kind: WriteKind
    let value: UnsafeRawPointer

    /// Entries go by their paths; of one path the priority comes last.
    static func precedes(_ a: Entry, _ b: Entry) -> Bool {
      a.path.withUnsafeBytes { x in
        b.path.withUnsafeBytes { y in
          if Path.storedBytes(x, precede: y) { return true }
          return a.path == b.path && a.kind != .setPriority && b.kind == .setPriority
        }
      }
    }
  }

  private mutating func applySorted(_ write: WriteView, _ note: Noting) {
    let value = Value(write.owner, write.facts)
    var list: [Entry] = []
    list.reserveCapacity(write.facts.entryCount)
    var entries = EntryReader(write.body, path: path, baseByteCount: write.path.count)
    while entries.advance() {
      list.append(Entry(path: Array(entries.wholePath), kind: entries.kind, value: entries.next))
      entries.skipValue()
    }
    // Stable, as `sort` is: of the same path twice, the later one holds.
    list.sort(by: Entry.precedes)
    for pass in [false, true] {
      for entry in list where (entry.kind == .setPriority) == pass && failure == nil {
        entry.path.withUnsafeBytes { path in
          var next = entry.value
          forget()
          change(entry.kind, at: path, &next, value, note)
        }
      }
    }
  }
}
