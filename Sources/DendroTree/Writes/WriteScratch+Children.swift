extension WriteScratch {
  struct Child {
    /// The first eight bytes of the key, for `PrefixOrder`.
    var prefix: UInt64
    /// Where the stored key begins, and behind that the value.
    var start: Int
    var keyEnd: Int
    var end = 0
  }

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
    guard children.count > firstChild else { return false }
    let count = putChildrenInOrder(from: firstChild)
    removeChildren(from: firstChild)
    setCount(count, at: countOffset)
    return true
  }

  /// Puts the bytes of the children into the order of their keys. Of several with the same key the last one stays.
  ///
  /// - Returns: how many children there are then.
  private func putChildrenInOrder(from first: Int) -> Int {
    children.withUnsafeBufferPointer { all in
      let list = UnsafeBufferPointer(rebasing: all[first...])
      let laidOut = bytes.withMutableBytes { bytes in
        PrefixOrder.withSorted(
          list.count, prefix: { list[$0].prefix },
          compare: { Self.compareKeys(list[$0], list[$1], bytes) }
        ) { order in order.map { layOut(list, in: $0, bytes) } }
      }
      guard let laidOut else { return list.count }
      bytes.removeAfter(laidOut.end)
      return laidOut.count
    }
  }

  private static func compareKeys(
    _ a: Child, _ b: Child, _ bytes: UnsafeMutableRawBufferPointer
  ) -> Int {
    let start = bytes.baseAddress.unsafelyUnwrapped
    let (aCount, aPrefix) = Varint.readTrusted(start + a.start)
    let (bCount, bPrefix) = Varint.readTrusted(start + b.start)
    return compareBytes(start + (a.start + aPrefix), aCount, start + (b.start + bPrefix), bCount)
  }

  /// - Returns: how many children are left, and where their bytes end.
  private func layOut(
    _ list: UnsafeBufferPointer<Child>, in order: UnsafeMutableBufferPointer<PrefixOrder.Element>,
    _ bytes: UnsafeMutableRawBufferPointer
  ) -> (count: Int, end: Int) {
    // They were added one behind the other.
    let start = list[0].start
    let byteCount = list[list.count &- 1].end &- start
    if sorted.count < byteCount { sorted = [UInt8](repeating: 0, count: 2 &* byteCount) }
    return sorted.withUnsafeMutableBytes { sorted in
      let from = bytes.baseAddress.unsafelyUnwrapped
      let to = sorted.baseAddress.unsafelyUnwrapped
      var count = 0
      var end = 0
      for place in 0..<order.count {
        let child = list[Int(order[place].index)]
        if place &+ 1 < order.count, order[place].prefix == order[place &+ 1].prefix,
          Self.compareKeys(child, list[Int(order[place &+ 1].index)], bytes) == 0
        {
          continue
        }
        let byteCount = child.end &- child.start
        (to + end).copyMemory(from: from + child.start, byteCount: byteCount)
        end &+= byteCount
        count &+= 1
      }
      (from + start).copyMemory(from: to, byteCount: end)
      return (count, start &+ end)
    }
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
}
