extension WriteView {
  /// A place that a write changes.
  package struct Place {
    /// The stored path, valid during the call only that gets it.
    package let path: UnsafeRawBufferPointer
    package let removes: Bool
    /// The children of the branch that is set there; 0 for anything else.
    package let childCount: Int
  }

  /// Calls `body` with each place that the write changes.
  ///
  /// - Parameter body: returns false to end.
  /// - Returns: whether `body` always returned true.
  package func forEachPlace<E: Error>(
    _ body: (Place) throws(E) -> Bool
  ) throws(E) -> Bool {
    guard kind == .update else {
      let start = self.body.baseAddress
      return try body(
        Place(path: path, removes: facts.onlyRemoves, childCount: start.map(childCount) ?? 0))
    }
    // Allocated by hand, since a temporary allocation does not throw typed errors.
    let room = UnsafeMutableRawPointer.allocate(
      byteCount: EntryReader.pathByteCountMax, alignment: 8)
    defer { room.deallocate() }
    if let start = path.baseAddress { room.copyMemory(from: start, byteCount: path.count) }
    var entries = EntryReader(self.body, path: room, baseByteCount: path.count)
    while entries.advance() {
      let removes =
        entries.kind == .remove
        || entries.kind == .set && entries.next.load(as: UInt8.self) == BodyTag.empty
      let childCount = entries.kind == .set ? childCount(entries.next) : 0
      if try !body(Place(path: entries.wholePath, removes: removes, childCount: childCount)) {
        return false
      }
      entries.skipValue()
    }
    return true
  }

  private func childCount(_ node: UnsafeRawPointer) -> Int {
    guard kind == .set || kind == .update else { return 0 }
    switch node.load(as: UInt8.self) {
    case BodyTag.tree: return trees[Varint.readTrusted(node + 1).value].childCount
    case BodyTag.branch: return Varint.readTrusted(node + 1).value
    case BodyTag.branchWithPriority:
      return Varint.readTrusted(BodyBytes.scalarEnd(node + 1)).value
    default: return 0
    }
  }

  /// The tree that is set, if it exists as pages and is the whole value of the write.
  package var tree: Node? {
    guard kind == .set, let start = body.baseAddress, start.load(as: UInt8.self) == BodyTag.tree
    else { return nil }
    return trees[Varint.readTrusted(start + 1).value]
  }

  /// Whether anything that the write changes lies at a stored path, above or below it.
  package func concerns(_ place: UnsafeRawBufferPointer) -> Bool {
    // Nothing below an update's path concerns what is neither above nor below that.
    guard Self.areRelated(path, place) else { return false }
    return kind != .update || !forEachPlace { !Self.areRelated($0.path, place) }
  }

  /// Whether one of two stored paths is at or below the other one.
  package static func areRelated(_ a: UnsafeRawBufferPointer, _ b: UnsafeRawBufferPointer) -> Bool {
    // Each key is preceded by its length, so a prefix in bytes is a prefix in keys.
    BodyWriter.sharedByteCount(a, b) == min(a.count, b.count)
  }

  /// Appends the body of an update with those entries alone that lie at a stored path, above or below it.
  ///
  /// - Returns: the facts of that update.
  package func appendPart(
    concerning place: UnsafeRawBufferPointer, to target: PayloadBuffer
  ) -> WriteFacts {
    var kept: [(path: [UInt8], kind: WriteKind, value: UnsafeRawBufferPointer)] = []
    var facts = facts
    let room = UnsafeMutableRawPointer.allocate(
      byteCount: EntryReader.pathByteCountMax, alignment: 8)
    defer { room.deallocate() }
    if let start = path.baseAddress { room.copyMemory(from: start, byteCount: path.count) }
    var entries = EntryReader(body, path: room, baseByteCount: path.count)
    while entries.advance() {
      let start = entries.next
      entries.skipValue()
      guard Self.areRelated(entries.wholePath, place) else { continue }
      let relative = UnsafeRawBufferPointer(rebasing: entries.wholePath[path.count...])
      kept.append(
        (
          Array(relative), entries.kind,
          UnsafeRawBufferPointer(start: start, count: entries.next - start)
        ))
    }
    target.appendVarint(kept.count)
    var previous: [UInt8] = []
    for entry in kept {
      target.append(entry.kind.rawValue)
      entry.path.withUnsafeBytes { path in
        previous.withUnsafeBytes { BodyWriter.append(path: path, after: $0, to: target) }
      }
      target.append(entry.value)
      previous = entry.path
    }
    facts.entryCount = kept.count
    // Removals that are left out count too: pages beside more places are read than have to be.
    return facts
  }
}

extension Node {
  /// Reads the pages that a write needs, and those that undoing it needs. Waits for the file on the calling thread.
  ///
  /// What is below a place that is set is read only if it has to be compared with what is set.
  package func load(for write: WriteView) throws(PageFailure) {
    try load(along: write.path)
    _ = try write.forEachPlace { (place) throws(PageFailure) in
      try load(along: place.path, removalCount: place.removes ? write.facts.removalCount : 0)
      if let existing = counterpart(of: place) { try existing.load() }
      return true
    }
    for place in write.serverValues {
      let loaded = place.path.withUnsafeBytes { path in
        Result { () throws(PageFailure) in try load(along: path) }
      }
      try loaded.get()
    }
  }

  /// Whether `load(for:)` has nothing to read.
  package func isLoaded(for write: WriteView) -> Bool {
    isLoaded(along: write.path)
      && write.forEachPlace { place in
        let removalCount = place.removes ? write.facts.removalCount : 0
        return isLoaded(along: place.path, removalCount: removalCount)
          && counterpart(of: place).map(\.isLoaded) ?? true
      }
      && write.serverValues.allSatisfy { place in
        place.path.withUnsafeBytes { isLoaded(along: $0) }
      }
  }

  /// The branch that one with as many children replaces: only such two have to be compared.
  private func counterpart(of place: WriteView.Place) -> Node? {
    guard place.childCount > 0 else { return nil }
    let existing = node(atStored: place.path)
    return existing.childCount == place.childCount ? existing : nil
  }
}
