import DendroStorage
import DendroTree

/// Compares the memory of the tree with the limit of the options.
///
/// Measuring visits every page. So it is done outside the admission lock, and only before the first write that
/// adds, and when the writes since the last measure may have reached the limit; or, if the tree was over it,
/// may have removed enough. The tree can exceed the limit by up to a 64th.
struct MemoryGauge {
  private let limit: Int?
  private var measured = 0
  private var isMeasured = false
  private var addedSince = 0
  private var removedSince = 0
  private(set) var measureCount = 0

  init(limit: Int?) { self.limit = limit }

  /// Bytes of memory for one encoded byte at most: a page is at least half full, and all the keys of a path
  /// may be new.
  private static let growth = 4

  var isLimited: Bool { limit != nil }

  /// Notes what an admitted write has changed.
  ///
  /// - Parameter replaced: makes the nodes that the write has replaced.
  mutating func admitted(
    _ write: WriteFacts, encodedByteCount: Int, replaced: () -> [Node]
  ) {
    guard let limit else { return }
    if !write.onlyRemoves {
      addedSince &+= (encodedByteCount + 16) &* Self.growth
    } else if measured > limit {
      // Estimated high: a measure too early costs time, one that never came would refuse writes for ever.
      for node in replaced() {
        removedSince =
          Self.byteCount(ofLeaf: node).map { removedSince &+ $0 } ?? measured
      }
    }
  }

  /// Bytes that a leaf may take; nil for a branch, whose pages would have to be visited.
  private static func byteCount(ofLeaf node: Node) -> Int? {
    guard node.isLeaf else { return nil }
    switch node.scalar {
    case .string(let string): return (string.utf8.count + 64) * growth
    case .bytes(let bytes): return (bytes.count + 64) * growth
    default: return 64 * growth
    }
  }

  /// Whether the tree has to be measured before `write` is admitted. Removals are always admitted.
  func isMeasureDue(for write: WriteFacts) -> Bool {
    guard let limit, !write.onlyRemoves else { return false }
    // The tree that was opened may be over the limit.
    guard isMeasured else { return true }
    return measured > limit
      ? removedSince >= measured - limit : addedSince > max(limit - measured, limit / 64)
  }

  /// Call before the head's memory is measured: later writes count for the next measure.
  mutating func beginMeasure() {
    measureCount += 1
    addedSince = 0
    removedSince = 0
  }

  mutating func endMeasure(_ byteCount: Int) {
    measured = byteCount
    isMeasured = true
  }

  /// Why `write` may not be admitted, or nil.
  func refusal(for write: WriteFacts) -> EngineError? {
    guard let limit, measured > limit, !write.onlyRemoves else { return nil }
    return .memoryLimit(bytes: measured, limit: limit)
  }
}
