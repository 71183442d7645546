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

  /// Appends what a change replaces.
  @inline(__always)
  mutating func append(_ storedPath: UnsafeRawBufferPointer, _ replaced: TreeEditor.Replaced) {
    let start = bytes.count
    bytes.append(storedPath)
    let value: Replaced
    switch replaced {
    case .nothing: value = .nothing
    case .leaf(let leaf):
      bytes.append(leaf)
      value = .leaf
    case .node(let node): value = keep(node)
    }
    entries.append(
      Entry(start: start, pathByteCount: Int32(storedPath.count), replaced: value))
  }

  @inline(never)
  private mutating func keep(_ node: Node) -> Replaced {
    if node.isEmpty { return .nothing }
    if let byteCount = node.packedLeafByteCount, byteCount <= Self.copiedLeafByteCountMax {
      bytes.append(room: byteCount) { node.writePackedLeaf(to: $0) }
      return .leaf
    }
    nodes.append(node)
    return .node(index: nodes.count - 1)
  }

  /// Longer leaves are not copied.
  private static let copiedLeafByteCountMax = 216

  /// The replaced nodes and their paths, oldest first.
  var replaced: [(path: Path, node: Node)] { replaced(from: 0) }

  /// The replaced nodes and their paths from an entry on, oldest first.
  func replaced(from first: Int) -> [(path: Path, node: Node)] {
    bytes.withBytes { bytes in
      entries[first...].map { entry in (path(of: entry, bytes), node(of: entry, bytes)) }
    }
  }

  /// The paths from an entry on, oldest first.
  func paths(from first: Int) -> [Path] {
    bytes.withBytes { bytes in entries[first...].map { path(of: $0, bytes) } }
  }

  private func path(of entry: Entry, _ bytes: UnsafeRawBufferPointer) -> Path {
    let end = entry.start + Int(entry.pathByteCount)
    return Path(trusted: UnsafeRawBufferPointer(rebasing: bytes[entry.start..<end]))
  }

  private func node(of entry: Entry, _ bytes: UnsafeRawBufferPointer) -> Node {
    switch entry.replaced {
    case .nothing: return .empty
    case .leaf:
      let start = entry.start + Int(entry.pathByteCount)
      return Node(packedLeaf: UnsafeRawBufferPointer(rebasing: bytes[start...]))
    case .node(let index): return nodes[index]
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
