import Synchronization

/// The memory in which a `WriteBuilder` works, used again by the next one. One builder has it at a time.
///
/// Unchecked `Sendable`: one thread at a time has the pool, which passes it from one builder to the next.
final class WriteScratch: @unchecked Sendable {
  /// The values; for an update, the stored path and the value of each entry, as they were added.
  let bytes = PayloadBuffer(capacity: 1024)
  /// The body of an update: its entries in order.
  private let body = PayloadBuffer(capacity: 1024)
  @exclusivity(unchecked) var trees: [Node] = []
  @exclusivity(unchecked) var serverValueCount = 0
  @exclusivity(unchecked) var entries: [Entry] = []
  /// The children of the branches that are open, the innermost last.
  @exclusivity(unchecked) var children: [Child] = []
  /// Room to put children in order.
  @exclusivity(unchecked) var sorted: [UInt8] = []

  // MARK: The pool

  /// Behind a pointer, of which no access is registered while the program runs: each write takes it twice.
  nonisolated(unsafe) private static let pool = {
    let pool = UnsafeMutablePointer<[WriteScratch]>.allocate(capacity: 1)
    pool.initialize(to: [])
    return pool
  }()
  private static let isPoolTaken = Atomic<Bool>(false)
  private static let pooledCountMax = 8

  /// Gives the pool to `body`.
  ///
  /// It does not wait for the pool: a process that was forked while another thread had it has no thread that gives it back.
  ///
  /// - Returns: nil if another thread has the pool; `body` is not called then.
  @discardableResult
  static func withPool<R>(_ body: (inout [WriteScratch]) throws -> R) rethrows -> R? {
    if isPoolTaken.exchange(true, ordering: .acquiring) { return nil }
    defer { isPoolTaken.store(false, ordering: .releasing) }
    return try body(&pool.pointee)
  }

  static func take() -> WriteScratch { (withPool { $0.popLast() } ?? nil) ?? WriteScratch() }

  static func giveBack(_ scratch: WriteScratch) {
    scratch.removeAll()
    withPool { if $0.count < pooledCountMax { $0.append(scratch) } }
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
    try putEntriesInOrder(below: base)
    var facts = WriteFacts()
    facts.entryCount = entries.count
    facts.hasServerValues = serverValueCount > 0
    body.appendVarint(entries.count)
    bytes.withBytes { bytes in
      var previous = UnsafeRawBufferPointer(start: nil, count: 0)
      for entry in entries {
        if entry.kind == .remove { facts.removalCount &+= 1 }
        if entry.kind == .setPriority { facts.isOrdered = false }
        let path = entry.path(in: bytes)
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
}
