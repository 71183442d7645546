import DendroEngine
import DendroProtocol
import DendroStorage
import DendroTree

/// What a client has of a listen's value before the listen begins.
enum KnownValue: Sendable {
  /// All of it, as it was at one moment.
  case all(Node)
  /// All but what later writes have changed.
  case outdated(OutdatedValue)
}

/// A value that a client has from an earlier connection, and the places at which it may have changed since.
struct OutdatedValue: Sendable {
  /// Relative to the location, none above another one.
  private let places: [Path]
  /// What is there by now.
  private let node: Node
  /// Of that, by which the client sees whether it has it.
  private let hash: String

  /// So many places are told one by one, and so much of the log is read for them. Beyond that the client gets all anew.
  private static let placeCountMax = 10_000
  private static let logByteCountMax = 32 << 20

  /// Finds the places in the log.
  ///
  /// - Parameters:
  ///   - node: what is at the path, wholly in memory.
  ///   - hash: of that.
  ///   - lsn: of a write after which the client's value was right.
  ///   - Returns: nil if the log does not say so, if too much has changed, or if all of the location has.
  /// - Complexity: O(log since that write). Waits for the disk.
  init?(_ node: Node, _ hash: String, at path: Path, in engine: Engine, since lsn: UInt64) {
    // The node was read before: it has no later write.
    let present = engine.statistics()
    let first = LogSequenceNumber(lsn)
    guard lsn > 0, first <= present.lastLSN else { return nil }
    if present.durableLSN < present.lastLSN {
      guard (try? engine.synchronize()) != nil else { return nil }
    }
    guard let reader = try? engine.changes(since: first, at: path) else { return nil }
    var found: Set<Path> = []
    var byteCount = 0
    while reader.position < present.lastLSN {
      guard let writes = try? reader.page(upTo: present.lastLSN) else { return nil }
      for write in writes {
        byteCount += write.byteCount
        for place in write.write.places {
          if place.isPrefix(of: path) { return nil }
          if let place = place.relative(to: path) { found.insert(place) }
        }
      }
      if found.count > Self.placeCountMax || byteCount > Self.logByteCountMax { return nil }
    }
    var places: [Path] = []
    for place in found.sorted() where places.last?.isPrefix(of: place) != true {
      places.append(place)
    }
    if places.isEmpty { return nil }
    self.places = places
    self.node = node
    self.hash = hash
  }

  /// What makes the value of the client the present one.
  ///
  /// - Parameters:
  ///   - present: what is there now.
  ///   - path: of the location.
  func texts(for present: Node, at path: Path) -> [AnswerText] {
    let parts = places.map { (path: $0, node: node.node(at: $0)) }
    let text = WireText.push(.patch(.root, parts), at: path, tag: nil, hash: hash)
    var later: [(path: Path, node: Node)] = []
    Node.difference(from: node, to: present) { place, _, node in later.append((place, node)) }
    if later.isEmpty { return [text] }
    let change: PlaceChange =
      later[0].path.isRoot ? .put(.root, present) : .patch(.root, later)
    return [text, WireText.push(change, at: path, tag: nil)]
  }
}

extension Write {
  /// The places that it changes.
  fileprivate var places: [Path] {
    guard case .update(let base, let entries) = self else { return [path] }
    return entries.map { base.appending($0.path) }
  }
}
