import DendroEngine
import DendroProtocol
import DendroStorage
import DendroTree

/// A value that a client has from an earlier connection, and what makes it the present one.
struct OutdatedValue: Sendable {
  private let path: Path
  /// What was there when the log was read.
  private let node: Node
  /// Makes the client's value that node.
  private let text: AnswerText

  /// Smaller values are sent as a whole: to read the log takes longer.
  private static let byteCountMin = 64 << 10
  /// So many places are told one by one. Beyond that the client gets all anew.
  private static let placeCountMax = 10_000
  /// So many pages of the log are read, of about 256 KiB.
  private static let pageCountMax = 128
  /// So many changes since the log was read are told one by one.
  private static let laterCountMax = 1_000

  /// Finds in the log what the client lacks.
  ///
  /// - Parameters:
  ///   - node: what is at the path, wholly in memory.
  ///   - hash: of that.
  ///   - lsn: of a write after which the client's value was right.
  ///   - tellsRemoved: whether the client may know the names of what was removed.
  ///   - isCancelled: whether nobody waits for it any more.
  /// - Returns: nil if the value is small, if the log does not say what has changed, or if too much has.
  /// - Complexity: O(log since that write). Waits for the disk.
  init?(
    _ node: Node, _ hash: String, at path: Path, in engine: Engine, since lsn: UInt64,
    tellsRemoved: Bool, isCancelled: () -> Bool
  ) {
    guard lsn > 0, node.isLarger(than: Self.byteCountMin),
      let found = Self.places(at: path, in: engine, since: lsn, isCancelled: isCancelled)
    else { return nil }
    var places: [Path] = []
    for place in found.sorted() where places.last?.isPrefix(of: place) != true {
      places.append(place)
    }
    let parts = places.map { (path: $0, node: node.node(at: $0)) }
    if parts.isEmpty || !tellsRemoved && parts.contains(where: \.node.isEmpty) { return nil }
    self.path = path
    self.node = node
    text = WireText.push(
      .patch(.root, Self.withRemovedLast(parts)), at: path, tag: nil, hash: hash)
  }

  /// The places below a path that were written after a write, relative to the path; nil if that is not known.
  private static func places(
    at path: Path, in engine: Engine, since lsn: UInt64, isCancelled: () -> Bool
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
      for _ in 0..<pageCountMax {
        let position = reader.position
        if position >= present.lastLSN { return found }
        for write in try reader.page(upTo: present.lastLSN) {
          for place in write.write.places {
            if place.isPrefix(of: path) { return nil }
            if let place = place.relative(to: path) { found.insert(place) }
          }
        }
        // The database is being closed if it has not read on.
        if found.count > placeCountMax || reader.position == position || isCancelled() {
          return nil
        }
      }
    } catch {
      return nil
    }
    return nil
  }

  /// What makes the value of the client the present one.
  ///
  /// - Parameter present: what is there now.
  /// - Returns: nil if too much has changed meanwhile.
  func texts(for present: Node) -> [AnswerText]? {
    var later: [(path: Path, node: Node)] = []
    Node.difference(from: node, to: present) { place, _, node in later.append((place, node)) }
    if later.isEmpty { return [text] }
    if later[0].path.isRoot || later.count > Self.laterCountMax { return nil }
    let change = PlaceChange.patch(.root, Self.withRemovedLast(later))
    return [text, WireText.push(change, at: path, tag: nil)]
  }

  /// A location that never is without children keeps its priority.
  private static func withRemovedLast(
    _ parts: [(path: Path, node: Node)]
  ) -> [(path: Path, node: Node)] {
    parts.filter { !$0.node.isEmpty } + parts.filter(\.node.isEmpty)
  }
}

extension Write {
  /// The places that it changes.
  fileprivate var places: [Path] {
    guard case .update(let base, let entries) = self else { return [path] }
    return entries.map { base.appending($0.path) }
  }
}
