import DendroProtocol
import DendroTree

/// Where commits have changed something, and the state after them: in place of the commits, if there are too many of them.
struct MergedCommits: Sendable {
  /// None is the root if there are others.
  private var paths: Set<Path> = []
  private var root: Node
  private(set) var lsn: UInt64

  /// If more places have changed, those above them stand for them.
  private static let pathCountMax = 4096

  init(_ changes: [Change], _ root: Node, lsn: UInt64) {
    self.root = root
    self.lsn = lsn
    add(changes, root, lsn: lsn)
  }

  mutating func add(_ changes: [Change], _ root: Node, lsn: UInt64) {
    self.root = root
    self.lsn = lsn
    for change in changes { paths.insert(change.path) }
    while paths.count > Self.pathCountMax {
      let depth = paths.reduce(0) { max($0, $1.count) }
      paths = Set(paths.map { $0.count == depth ? $0.parent ?? $0 : $0 })
    }
  }

  /// All of them as one commit.
  var commit: CommitChanges {
    let changes = paths.filter { path in
      !(0..<path.count).contains { paths.contains(path.prefix($0)) }
    }
    .sorted()
    .map { Change(path: $0, replaced: .empty, new: root.node(at: $0)) }
    return CommitChanges(disjoint: changes, isReplacedKnown: false)
  }
}
