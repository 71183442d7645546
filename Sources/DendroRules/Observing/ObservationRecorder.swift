import DendroTree

/// Collects what a verdict depends on, while it is made.
struct ObservationRecorder: ~Copyable {
  private var bytes: Stack<UInt8>
  private var count = 0
  /// Where the last observation begins.
  private var last = 0
  /// Where the one begins that is being written.
  private var next = 0
  private let written: WrittenPaths?
  private let includesWritten: Bool

  /// - Parameter request: nil if nothing will be noted.
  init(_ request: UnsafePointer<RuleRequest>?, _ memory: UnsafeMutableBufferPointer<UInt8>) {
    bytes = Stack(in: memory)
    written = request.map { WrittenPaths($0.pointee) }
    includesWritten = request?.pointee.hasServerValues ?? false
  }

  /// Begins an observation.
  ///
  /// - Returns: room for the path and the detail.
  mutating func begin(_ pathByteCount: Int, _ detailByteCount: Int) -> UnsafeMutableRawPointer {
    next = bytes.count
    let count = Observation.headByteCount + pathByteCount + detailByteCount
    return bytes.extend(by: count) + Observation.headByteCount
  }

  /// Completes the observation whose path and detail were written into the room that `begin` gave.
  mutating func end(
    _ room: UnsafeMutableRawPointer, _ pathByteCount: Int, _ detailByteCount: Int, isNew: Bool,
    _ sight: Sight
  ) {
    var isNew = isNew
    if isNew, let written {
      switch written.relation(to: UnsafeRawBufferPointer(start: room, count: pathByteCount)) {
      case .written where !includesWritten: return bytes.truncate(to: next)
      case .written, .above: break
      // There the new tree is the old one, which is cheaper to have.
      case .apart: isNew = false
      }
    }
    Observation.writeHead(
      sight, isNew: isNew, pathByteCount: pathByteCount, detailByteCount: detailByteCount,
      to: room - Observation.headByteCount)
    if count > 0, bytes.hasSame(last..<next, next..<bytes.count) {
      return bytes.truncate(to: next)
    }
    last = next
    count &+= 1
  }

  func finish(_ inputs: RuleObservations.Inputs, isComplete: Bool) -> RuleObservations {
    RuleObservations(
      inputs: inputs, bytes: bytes.withBytes { Array($0) }, count: count, isComplete: isComplete)
  }
}

extension Stack<UInt8> {
  fileprivate func hasSame(_ a: Range<Int>, _ b: Range<Int>) -> Bool {
    withBytes { bytes in
      UnsafeRawBufferPointer(rebasing: bytes[a])
        .isEqual(to: UnsafeRawBufferPointer(rebasing: bytes[b]))
    }
  }
}

extension Evaluation {
  /// Notes what was seen at a place.
  ///
  /// - Parameter detail: the value, of sights that have one.
  @inline(never)
  mutating func note(_ place: Int, _ sight: Sight, _ detail: Value? = nil) {
    let detailByteCount = detail?.packedByteCount ?? 0
    guard let (room, pathByteCount) = beginObservation(place, detailByteCount) else { return }
    detail?.writePacked(to: room + pathByteCount)
    observer.end(room, pathByteCount, detailByteCount, isNew: places[place].isNew, sight)
  }

  mutating func noteValue(_ place: Int, _ value: Value) {
    switch value {
    case .null: note(place, .isNothing)
    case .unusable: note(place, .isObject)
    default: note(place, .value, value)
    }
  }

  /// Notes which children there are, since each of them was judged.
  mutating func noteKeys(_ place: Int) {
    guard isObserving else { return }
    view(place).storedKeys.storedBytes.withUnsafeBytes { keys in
      guard let (room, pathByteCount) = beginObservation(place, keys.count) else { return }
      if let source = keys.baseAddress {
        (room + pathByteCount).copyMemory(from: source, byteCount: keys.count)
      }
      observer.end(room, pathByteCount, keys.count, isNew: places[place].isNew, .keys)
    }
  }

  /// Begins an observation and writes the path of a place.
  ///
  /// - Returns: nil for an impossible location, where nothing can ever be, and for one that the write says all of.
  private mutating func beginObservation(
    _ place: Int, _ detailByteCount: Int
  ) -> (room: UnsafeMutableRawPointer, pathByteCount: Int)? {
    var pathByteCount = 0
    var current = place
    while places[current].parent >= 0 {
      guard current != writtenPlace, let key = places[current].key else { return nil }
      pathByteCount &+= key.count &+ (key.count < 0x80 ? 1 : 2)
      current = Int(places[current].parent)
    }
    if current == writtenPlace { return nil }
    let room = observer.begin(pathByteCount, detailByteCount)
    // From its end: each place knows the one above it alone.
    var end = room + pathByteCount
    current = place
    while let key = places[current].key {
      end -= key.count
      end.copyMemory(from: key.start, byteCount: key.count)
      end -= key.count < 0x80 ? 1 : 2
      if key.count < 0x80 {
        end.storeBytes(of: UInt8(truncatingIfNeeded: key.count), as: UInt8.self)
      } else {
        Path.writeKeyByteCount(key.count, to: end)
      }
      current = Int(places[current].parent)
    }
    return (room, pathByteCount)
  }
}

extension DataView {
  /// The keys of all children in order, as the stored bytes of a path.
  var storedKeys: Path {
    var keys: [Key] = []
    visitChildren { key, _ in
      keys.append(key.key)
      return true
    }
    return Path(keys: keys.sorted())
  }
}
