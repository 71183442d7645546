extension WriteView {
  /// Appends the body with every server value computed, as it is logged.
  ///
  /// - Parameters:
  ///   - time: milliseconds since 1970.
  ///   - root: the tree before the write, whose pages on the way to the server values are in memory.
  ///   - target: what is appended to.
  /// - Complexity: O(bytes of the body + server values · depth · log children).
  package func appendResolved(time: Int64, against root: Node, to target: PayloadBuffer) {
    guard let start = body.baseAddress else { return }
    var copied = start
    for place in serverValues {
      target.append(UnsafeRawBufferPointer(start: copied, count: place.start - copied))
      BodyWriter.append(place.scalar(time: time, against: root), to: target)
      copied = BodyBytes.scalarEnd(place.start)
    }
    target.append(UnsafeRawBufferPointer(start: copied, count: start + body.count - copied))
  }

  /// Whether what it writes depends on what is there, or on the moment: whether it has increments or server values.
  ///
  /// - Complexity: O(1), but for an update O(bytes of the body).
  package var dependsOnState: Bool {
    if facts.hasServerValues { return true }
    guard kind == .update else { return kind == .increment }
    if body.isEmpty { return false }
    let room = UnsafeMutableRawPointer.allocate(
      byteCount: EntryReader.pathByteCountMax, alignment: 8)
    defer { room.deallocate() }
    var entries = EntryReader(body, path: room, baseByteCount: 0)
    while entries.advance() {
      if entries.kind == .increment { return true }
      entries.next = BodyBytes.valueEnd(entries.kind, entries.next)
    }
    return false
  }

  /// The server values in the body, in the order of their bytes.
  ///
  /// - Complexity: O(bytes of the body).
  var serverValues: [ServerValuePlace] {
    guard facts.hasServerValues, let start = body.baseAddress else { return [] }
    var walk = ServerValueWalk()
    if kind == .update {
      let room = UnsafeMutableRawPointer.allocate(
        byteCount: EntryReader.pathByteCountMax, alignment: 8)
      defer { room.deallocate() }
      if let base = path.baseAddress { room.copyMemory(from: base, byteCount: path.count) }
      var entries = EntryReader(body, path: room, baseByteCount: path.count)
      while entries.advance() {
        walk.path = Array(entries.wholePath)
        entries.next = walk.value(entries.kind, entries.next)
      }
    } else {
      walk.path = Array(path)
      _ = walk.value(kind, start)
    }
    return walk.places
  }
}

/// A server value in a trusted body.
struct ServerValuePlace {
  let start: UnsafeRawPointer
  /// The stored path of the node whose value or priority it is.
  let path: [UInt8]
  let isPriority: Bool

  func scalar(time: Int64, against root: Node) -> Scalar {
    if start.load(as: UInt8.self) == BodyTag.timestamp { return .integer(time) }
    let delta = PackedScalar.numberTrusted(start + 1).number
    let existing = path.withUnsafeBytes { root.node(atStored: $0) }
    return delta.incrementing(isPriority ? existing.priority : existing.scalar)
  }
}

/// Looks for server values in trusted bytes.
private struct ServerValueWalk {
  var places: [ServerValuePlace] = []
  /// The stored path of what is read.
  var path: [UInt8] = []

  /// - Returns: the end of the value.
  mutating func value(_ kind: WriteKind, _ start: UnsafeRawPointer) -> UnsafeRawPointer {
    switch kind {
    case .set: return node(start)
    case .setPriority where start.load(as: UInt8.self) != 0:
      return scalar(start + 1, isPriority: true)
    default: return BodyBytes.valueEnd(kind, start)
    }
  }

  private mutating func node(_ start: UnsafeRawPointer) -> UnsafeRawPointer {
    var next = start
    switch next.load(as: UInt8.self) {
    case BodyTag.empty, BodyTag.tree: return BodyBytes.nodeEnd(next)
    case PackedScalar.priorityTag:
      return scalar(scalar(next + 1, isPriority: true), isPriority: false)
    case BodyTag.branch: next += 1
    case BodyTag.branchWithPriority: next = scalar(next + 1, isPriority: true)
    default: return scalar(next, isPriority: false)
    }
    let (count, prefix) = Varint.readTrusted(next)
    next += prefix
    let pathByteCount = path.count
    for _ in 0..<count {
      let (keyByteCount, prefix) = Varint.readTrusted(next)
      let keyEnd = next + prefix + keyByteCount
      path.append(contentsOf: UnsafeRawBufferPointer(start: next, count: keyEnd - next))
      next = node(keyEnd)
      path.removeLast(path.count - pathByteCount)
    }
    return next
  }

  private mutating func scalar(
    _ start: UnsafeRawPointer, isPriority: Bool
  ) -> UnsafeRawPointer {
    switch start.load(as: UInt8.self) {
    case BodyTag.timestamp, BodyTag.sum:
      places.append(ServerValuePlace(start: start, path: path, isPriority: isPriority))
    default: break
    }
    return BodyBytes.scalarEnd(start)
  }
}
