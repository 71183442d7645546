import DendroStorage
import DendroTree

/// What the writes of a batch replaced, oldest first: grafted back, newest first, it undoes them.
///
/// Leaves and paths are kept as bytes, since nearly every write replaces a leaf and nearly none is undone.
struct UndoLog: ~Copyable {
  /// The first write of the batch.
  private(set) var firstLSN: LogSequenceNumber?
  /// The writes without a completion that would report a failure.
  private(set) var unreported: [LogSequenceNumber] = []
  private(set) var contents = Contents()

  /// What an undo log holds, to be read until that changes: a copy shares the bytes.
  struct Contents {
    /// For each entry the stored path, and behind it the packed leaf if that was replaced.
    fileprivate let bytes = PayloadBuffer()
    fileprivate var entries: [Entry] = []
    /// Replaced branches and long leaves, which are not copied.
    fileprivate var nodes: [Node] = []
  }

  fileprivate struct Entry {
    /// Where the path begins in `bytes`.
    var start: Int
    var pathByteCount: Int32
    var root: Root
    var replaced: Replaced
  }

  /// The tree that was changed.
  enum Root { case data, system }

  fileprivate enum Replaced {
    case nothing
    case leaf
    case node(index: Int)
  }

  var count: Int { contents.entries.count }

  /// About the memory that it takes, in bytes.
  var byteCount: Int {
    contents.bytes.count &+ contents.entries.count &* MemoryLayout<Entry>.stride
      &+ contents.nodes.count &* MemoryLayout<Node>.stride
  }

  /// Notes the write that has replaced what was appended last.
  @inline(__always)
  mutating func noteWrite(_ lsn: LogSequenceNumber, isReported: Bool) {
    if firstLSN == nil { firstLSN = lsn }
    if !isReported { unreported.append(lsn) }
  }

  /// Appends what a change replaces.
  @inline(__always)
  mutating func append(
    _ storedPath: UnsafeRawBufferPointer, _ replaced: TreeEditor.Replaced, in root: Root = .data
  ) {
    let start = contents.bytes.count
    contents.bytes.append(storedPath)
    let value: Replaced
    switch replaced {
    case .nothing: value = .nothing
    case .leaf(let leaf):
      contents.bytes.append(leaf)
      value = .leaf
    case .node(let node): value = keep(node)
    }
    contents.entries.append(
      Entry(
        start: start, pathByteCount: Int32(storedPath.count), root: root, replaced: value))
  }

  @inline(never)
  private mutating func keep(_ node: Node) -> Replaced {
    if node.isEmpty { return .nothing }
    if let byteCount = node.packedLeafByteCount, byteCount <= Self.copiedLeafByteCountMax {
      contents.bytes.append(room: byteCount) { node.writePackedLeaf(to: $0) }
      return .leaf
    }
    contents.nodes.append(node)
    return .node(index: contents.nodes.count - 1)
  }

  /// Longer leaves are not copied.
  private static let copiedLeafByteCountMax = 216

  /// Empties it, and keeps its memory for the next batch.
  mutating func removeAll() {
    firstLSN = nil
    unreported.removeForNextBatch()
    contents.bytes.removeAll()
    contents.entries.removeForNextBatch()
    contents.nodes.removeForNextBatch()
  }
}

extension UndoLog.Contents {
  /// The replaced nodes of a root and their paths from an entry on, oldest first.
  func replaced(from first: Int = 0, in root: UndoLog.Root = .data) -> [(path: Path, node: Node)] {
    bytes.withBytes { bytes in
      entries[first...].lazy.filter { $0.root == root }.map { entry in
        (path(of: entry, bytes), node(of: entry, bytes))
      }
    }
  }

  /// The paths of the data from an entry on, oldest first.
  func paths(from first: Int) -> [Path] {
    bytes.withBytes { bytes in
      entries[first...].lazy.filter { $0.root == .data }.map { path(of: $0, bytes) }
    }
  }

  /// Whether data were changed, from an entry on.
  func changesData(from first: Int) -> Bool { entries[first...].contains { $0.root == .data } }

  private func path(of entry: UndoLog.Entry, _ bytes: UnsafeRawBufferPointer) -> Path {
    let end = entry.start + Int(entry.pathByteCount)
    return Path(trusted: UnsafeRawBufferPointer(rebasing: bytes[entry.start..<end]))
  }

  private func node(of entry: UndoLog.Entry, _ bytes: UnsafeRawBufferPointer) -> Node {
    switch entry.replaced {
    case .nothing: return .empty
    case .leaf:
      let start = entry.start + Int(entry.pathByteCount)
      return Node(packedLeaf: UnsafeRawBufferPointer(rebasing: bytes[start...]))
    case .node(let index): return nodes[index]
    }
  }
}
