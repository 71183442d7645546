import DendroEngine
import DendroProtocol
import DendroStorage
import DendroTree

/// A value that a client has from an earlier connection, and what makes it the present one.
struct OutdatedValue: Sendable {
  private let path: Path
  /// What was there when the log was read.
  private let node: Node
  /// Makes the client's value that node (`WireText.resuming`).
  private let text: AnswerText

  /// Smaller values are sent whole: that is faster than reading the log.
  private static let byteCountMin = 64 << 10
  /// The most places that are sent one by one. If more were written, the client gets the whole value.
  private static let placeCountMax = 10_000
  /// The log is not read further once its records have had more bytes than this.
  private static let logByteCountMax = 32 << 20
  /// A location loses its priority when it becomes empty, even if it is filled again. So one from which something was removed
  /// is sent whole, unless it takes more bytes than this.
  private static let emptiedByteCountMax = 1 << 10
  /// The most changes that were made while the log was read and are sent one by one.
  private static let laterCountMax = 1_000

  /// Finds in the log what the client lacks.
  ///
  /// - Parameters:
  ///   - node: what is at the path, wholly in memory.
  ///   - hash: of that.
  ///   - lsn: of a write after which the client's value was right.
  ///   - tellsRemoved: whether the client may know the names of what was removed.
  ///   - isCancelled: returns true once the client has left.
  /// - Returns: nil if the log does not say what has changed, or if too much has.
  /// - Complexity: O(log since that write). Waits for the disk.
  init?(
    _ node: Node, _ hash: String, at path: Path, in engine: Engine, since lsn: UInt64,
    tellsRemoved: Bool, isCancelled: () -> Bool
  ) {
    guard
      let found = Self.places(
        at: path, in: engine, since: lsn, below: node, isCancelled: isCancelled)
    else { return nil }
    var places: [Path] = []
    for place in found.sorted() where places.last?.isPrefix(of: place) != true {
      places.append(place)
    }
    let parts = places.map { (path: $0, node: node.node(at: $0)) }
    if parts.isEmpty || !tellsRemoved && parts.contains(where: \.node.isEmpty) { return nil }
    self.path = path
    self.node = node
    text = WireText.resuming(Self.withRemovedLast(parts), at: path, hash: hash)
  }

  /// Whether the log is read for what a client lacks.
  ///
  /// - Parameter lsn: of the write that the client names; 0 if it knows none.
  static func isWorthwhile(_ node: Node, _ location: WireLocation, since lsn: UInt64) -> Bool {
    lsn > 0 && location.query == nil && location.tag == nil && !location.isShallow
      && node.isLarger(than: byteCountMin)
  }

  /// The places below a path that were written after a write, relative to the path; nil if that is not known.
  ///
  /// - Parameter node: what is at the path.
  private static func places(
    at path: Path, in engine: Engine, since lsn: UInt64, below node: Node, isCancelled: () -> Bool
  ) -> Set<Path>? {
    // The node was read before: it has no later write.
    let present = engine.statistics()
    let first = LogSequenceNumber(lsn)
    guard first <= present.lastLSN else { return nil }
    do throws(EngineError) {
      // Only what is durable is read in the log.
      if present.durableLSN < present.lastLSN { try engine.synchronize() }
      let reader = try engine.changes(since: first, at: path)
      var found: Set<Path> = []
      while reader.position < present.lastLSN {
        let position = reader.position
        for write in try reader.page(upTo: present.lastLSN) {
          for (place, isRemoved) in write.write.places {
            if place.isPrefix(of: path) { return nil }
            guard let place = place.relative(to: path) else { continue }
            found.insert(isRemoved ? emptied(by: place, in: node) : place)
          }
        }
        // A page is without progress if the database is closed, or all of a large record is older.
        if reader.position == position || isCancelled() || found.count > placeCountMax
          || reader.byteCount > logByteCountMax
        {
          return nil
        }
      }
      return found
    } catch {
      return nil
    }
  }

  /// The highest location that may have been empty because something was removed, below that of the listen.
  private static func emptied(by place: Path, in node: Node) -> Path {
    var place = place
    while place.count > 1 {
      let parent = place.prefix(place.count - 1)
      if node.node(at: parent).isLarger(than: emptiedByteCountMax) { break }
      place = parent
    }
    return place
  }

  /// Makes the value of the client the present one.
  ///
  /// - Parameter present: what is there now.
  /// - Returns: nil if too much has changed meanwhile.
  func text(for present: Node) -> AnswerText? {
    var later: [(path: Path, node: Node)] = []
    Node.difference(from: node, to: present) { place, _, node in later.append((place, node)) }
    if later.first?.path.isRoot == true || later.count > Self.laterCountMax { return nil }
    return WireText.resumed(text, Self.withRemovedLast(later))
  }

  /// A location that never is without children keeps its priority.
  private static func withRemovedLast(
    _ parts: [(path: Path, node: Node)]
  ) -> [(path: Path, node: Node)] {
    parts.filter { !$0.node.isEmpty } + parts.filter(\.node.isEmpty)
  }
}

extension Write {
  /// The places that it changes, and whether it removes what is there.
  fileprivate var places: [(path: Path, isRemoved: Bool)] {
    switch self {
    case .update(let base, let entries):
      entries.map { entry in
        if case .remove = entry.action {
          (base.appending(entry.path), true)
        } else {
          (base.appending(entry.path), false)
        }
      }
    case .remove(let path): [(path, true)]
    case .set(let path, let node): [(path, node.isEmpty)]
    case .increment, .setPriority: [(path, false)]
    }
  }
}
