package import DendroStorage
package import DendroTree

/// One write of the log, decoded.
package struct LoggedWrite: Sendable {
  package var lsn: LogSequenceNumber
  /// Milliseconds since 1970.
  package var time: Int64
  package var write: Write
  /// Bytes of its encoding, before compression.
  package var byteCount: Int
}

/// Reads the writes of one record's payload, which may be hostile: every count is bounded by the bytes
/// that are left.
package struct WriteReader: ~Copyable {
  var reader: ByteReader
  private var paths = PathReader()
  var cursor = LeafCursor()
  private var lsn: LogSequenceNumber
  private var time: Int64
  /// Why a page of the tree could not be read, where that ended `applyNext`.
  package private(set) var pageFailure: PageFailure?

  package init(_ payload: UnsafeRawBufferPointer, firstLSN: LogSequenceNumber, baseTime: Int64) {
    reader = ByteReader(payload)
    lsn = firstLSN
    time = baseTime
  }

  /// Begins with another record. Nothing is allocated, which counts where records have one write each.
  package mutating func restart(
    _ payload: UnsafeRawBufferPointer, firstLSN: LogSequenceNumber, baseTime: Int64
  ) {
    reader = ByteReader(payload)
    paths.restart()
    cursor.forget()
    lsn = firstLSN
    time = baseTime
    pageFailure = nil
  }

  package var isAtEnd: Bool { reader.isAtEnd }

  /// The time of the next write, milliseconds since 1970; it is not passed over.
  func nextTime() throws(CodingError) -> Int64 {
    var copy = reader
    let delta = try copy.count("a write's time", limit: 1 << 53)
    return time.addingReportingOverflow(Int64(delta)).partialValue
  }

  package mutating func next() throws(CodingError) -> LoggedWrite {
    let start = reader.offset
    try readTime()
    let kind = try reader.tag("a write's kind")
    let write = try body(kind, try paths.read(&reader, depth: Limits.depth))
    defer { lsn = lsn.next }
    return LoggedWrite(lsn: lsn, time: time, write: write, byteCount: reader.offset - start)
  }

  /// Applies the next write to `root` if its number is higher than `last`. The set of a leaf, which most
  /// writes are, is put into the tree straight from its bytes.
  ///
  /// - Parameters:
  ///   - location: nil to apply every write; otherwise only those that concern it are applied.
  ///   - changes: room for what the tree notes; not used.
  package mutating func applyNext(
    to root: inout Node, after last: LogSequenceNumber, concerning location: ReplayLocation? = nil,
    _ changes: inout [Change]
  ) throws(CodingError) -> (lsn: LogSequenceNumber, time: Int64) {
    try readTime()
    let kind = try reader.tag("a write's kind")
    _ = try paths.readBytes(&reader)
    if let location, try skipBody(kind, unlessItConcerns: location) {
      defer { lsn = lsn.next }
      return (lsn, time)
    }
    if kind == WriteCoding.Kind.set,
      let end = PackedScalar.leafEnd(validating: reader.bytes, at: reader.offset)
    {
      let leaf = try reader.take(end - reader.offset, "a packed leaf")
      if lsn > last {
        try checkPath()
        do throws(PageFailure) {
          try root.loadAndSet(storedPath: paths.bytes, packedLeaf: leaf, &cursor)
        } catch {
          throw unreadable(error)
        }
      }
    } else if kind == WriteCoding.Kind.increment {
      try applyIncrement(to: &root, isNew: lsn > last)
    } else if kind == WriteCoding.Kind.update,
      try applyLeaves(
        below: try paths.path(), to: &root, isNew: lsn > last, concerning: location)
    {
      // Applied.
    } else {
      var write = try body(kind, try paths.path())
      if let location { write = location.part(of: write) }
      if lsn > last {
        changes.removeAll(keepingCapacity: true)
        try apply(write, to: &root, recording: &changes)
      }
    }
    defer { lsn = lsn.next }
    return (lsn, time)
  }

  /// Passes over the next write where it does not concern the location.
  ///
  /// - Returns: false where it does; read no more of the record then.
  mutating func skipNext(unlessItConcerns location: ReplayLocation) throws(CodingError) -> Bool {
    try readTime()
    let kind = try reader.tag("a write's kind")
    _ = try paths.readBytes(&reader)
    return try skipBody(kind, unlessItConcerns: location)
  }

  /// Passes over the body of the write whose path was read, where the write does not concern the location.
  ///
  /// - Returns: false where it does; nothing was read then.
  private mutating func skipBody(
    _ kind: UInt8, unlessItConcerns location: ReplayLocation
  ) throws(CodingError) -> Bool {
    guard location.isConcerned(by: paths.bytes) else {
      try skipBody(kind)
      return true
    }
    guard kind == WriteCoding.Kind.update else { return false }
    return try skipEntries(below: try paths.path(), unlessTheyConcern: location)
  }

  private mutating func applyIncrement(
    to root: inout Node, isNew: Bool
  ) throws(CodingError) {
    try checkPath()
    let delta = try ScalarCoding.decodeNumber(&reader)
    guard isNew else { return }
    if try exchange(.increment(delta), at: paths.bytes, in: &root) == .declined {
      try apply(.increment(try paths.path(), delta), to: &root)
    }
  }

  /// Throws unless the path read last is legal.
  private mutating func checkPath() throws(CodingError) {
    if paths.countKeys() ?? .max > Limits.depth { _ = try paths.path() }
  }

  /// Notes why a page of the tree could not be read.
  mutating func unreadable(_ failure: PageFailure) -> CodingError {
    pageFailure = failure
    return CodingError(expected: "the pages of the tree", found: "\(failure.cause)")
  }

  private mutating func readTime() throws(CodingError) {
    let delta = try reader.count("a write's time", limit: 1 << 53)
    time = time.addingReportingOverflow(Int64(delta)).partialValue
  }

  private mutating func body(_ kind: UInt8, _ path: Path) throws(CodingError) -> Write {
    switch kind {
    case WriteCoding.Kind.remove: return .remove(path)
    case WriteCoding.Kind.set:
      return .set(path, try NodeCoding.decode(&reader, depth: Limits.depth - path.count))
    case WriteCoding.Kind.increment: return .increment(path, try ScalarCoding.decodeNumber(&reader))
    case WriteCoding.Kind.setPriority: return .setPriority(path, try priority())
    case WriteCoding.Kind.update:
      return .update(path, try entries(depth: Limits.depth - path.count))
    default: throw CodingError(expected: "a write's kind, 0 to 4", found: String(kind))
    }
  }

  private mutating func priority() throws(CodingError) -> Scalar? {
    switch try reader.tag("a priority") {
    case 0: return nil
    case 1: return try ScalarCoding.decodePriority(&reader)
    case let tag: throw CodingError(expected: "0 or 1 before a priority", found: String(tag))
    }
  }

  static func entryCount(_ reader: inout ByteReader) throws(CodingError) -> Int {
    // An entry takes at least three bytes.
    try reader.count("a count of entries", limit: reader.remaining / 3)
  }

  /// - Parameter depth: levels that may follow below the update's path.
  private mutating func entries(depth: Int) throws(CodingError) -> [Write.Entry] {
    let count = try Self.entryCount(&reader)
    var entries: [Write.Entry] = []
    entries.reserveCapacity(count)
    var paths = PathReader()
    for _ in 0..<count {
      let kind = try reader.tag("an entry's kind")
      let path = try paths.read(&reader, depth: depth)
      switch kind {
      case WriteCoding.Kind.remove: entries.append(.init(path: path, action: .remove))
      case WriteCoding.Kind.set:
        let node = try NodeCoding.decode(&reader, depth: depth - path.count)
        entries.append(.init(path: path, action: .set(node)))
      case WriteCoding.Kind.increment:
        entries.append(
          .init(path: path, action: .increment(try ScalarCoding.decodeNumber(&reader))))
      case WriteCoding.Kind.setPriority:
        entries.append(.init(path: path, action: .setPriority(try priority())))
      default: throw CodingError(expected: "an entry's kind, 0 to 3", found: String(kind))
      }
    }
    return entries
  }
}
