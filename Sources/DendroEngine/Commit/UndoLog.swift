import DendroTree

/// What the writes of a batch replaced, oldest first: grafted back, newest first, it undoes them.
///
/// Leaves and paths are kept as bytes, since nearly every write replaces a leaf and nearly none is undone. A
/// copy shares these bytes: only one of two copies may be changed.
struct UndoLog {
  /// For each entry the stored path, and behind it the packed leaf if that was replaced.
  private let bytes = PayloadBuffer()
  private var entries: [Entry] = []
  /// Replaced branches and long leaves, which are not copied.
  private var nodes: [Node] = []

  private struct Entry {
    /// Where the path begins in `bytes`.
    var start: Int
    var pathByteCount: Int32
    var replaced: Replaced
  }

  private enum Replaced {
    case nothing
    case leaf
    case node(index: Int)
  }

  var count: Int { entries.count }

  /// About the memory that it takes, in bytes.
  var byteCount: Int {
    bytes.count &+ entries.count &* MemoryLayout<Entry>.stride
      &+ nodes.count &* MemoryLayout<Node>.stride
  }

  /// Appends what one edit of a leaf replaces.
  ///
  /// - Parameter edit: makes the edit. It passes the packed leaf that is replaced, if there is one, to its
  ///   parameter.
  @inline(__always)
  mutating func append(
    _ storedPath: UnsafeRawBufferPointer,
    _ edit: ((UnsafeRawBufferPointer) -> Void) -> LeafEdit.Outcome
  ) -> LeafEdit.Outcome {
    let start = bytes.count
    bytes.append(storedPath)
    // The log keeps its buffer: the closure need not count a reference to it.
    let buffer = Unmanaged.passUnretained(bytes)
    let outcome = edit { replaced in buffer._withUnsafeGuaranteedRef { $0.append(replaced) } }
    let replaced: Replaced
    switch outcome {
    case .declined, .unloaded, .unchanged:
      bytes.removeAfter(start)
      return outcome
    case .inserted: replaced = .nothing
    case .replaced: replaced = .leaf
    }
    entries.append(
      Entry(start: start, pathByteCount: Int32(storedPath.count), replaced: replaced))
    return outcome
  }

  /// Appends the node that a change replaces.
  mutating func append(_ path: Path, _ replaced: Node) {
    let start = bytes.count
    path.storedBytes.withUnsafeBytes { bytes.append($0) }
    let pathByteCount = Int32(bytes.count &- start)
    let value: Replaced
    if replaced.isEmpty {
      value = .nothing
    } else if let byteCount = replaced.packedLeafByteCount, byteCount <= LeafEdit.byteCountMax {
      bytes.append(room: byteCount) { replaced.writePackedLeaf(to: $0) }
      value = .leaf
    } else {
      value = .node(index: nodes.count)
      nodes.append(replaced)
    }
    entries.append(Entry(start: start, pathByteCount: pathByteCount, replaced: value))
  }

  /// The replaced nodes and their paths, oldest first.
  var replaced: [(path: Path, node: Node)] {
    bytes.withBytes { bytes in
      entries.map { entry in
        let end = entry.start + Int(entry.pathByteCount)
        let stored = UnsafeRawBufferPointer(rebasing: bytes[entry.start..<end])
        guard let path = Path(storedBytes: stored) else {
          preconditionFailure("a path of an admitted write is valid")
        }
        switch entry.replaced {
        case .nothing: return (path, .empty)
        case .leaf: return (path, Node(packedLeaf: UnsafeRawBufferPointer(rebasing: bytes[end...])))
        case .node(let index): return (path, nodes[index])
        }
      }
    }
  }

  /// What the last entry replaced.
  var lastReplaced: Node {
    guard let entry = entries.last else { return .empty }
    switch entry.replaced {
    case .nothing: return .empty
    case .node(let index): return nodes[index]
    case .leaf:
      let start = entry.start + Int(entry.pathByteCount)
      return bytes.withBytes {
        Node(packedLeaf: UnsafeRawBufferPointer(rebasing: $0[start...]))
      }
    }
  }

  /// Arrays that a burst has grown beyond this many elements are freed, not kept for the next batch.
  private static let keptCapacityMax = 1 << 14

  /// Empties it, and keeps its memory for the next batch.
  mutating func removeAll() {
    bytes.removeAll()
    entries.removeAll(keepingCapacity: entries.capacity <= Self.keptCapacityMax)
    nodes.removeAll(keepingCapacity: nodes.capacity <= Self.keptCapacityMax)
  }
}
