import DendroTree

/// Watches the memory of the tree against the limit of the options.
///
/// Measuring walks every page, so it is done only when what was added since the last measure may have
/// reached the limit, or where that was over it, when enough may have been removed. Over the limit by up
/// to a 64th is possible.
struct MemoryGauge {
  private let limit: Int?
  private var measured = 0
  private var addedSince = 0
  private var removedSince = 0
  /// How often it was measured.
  private(set) var measureCount = 0

  init(limit: Int?) { self.limit = limit }

  /// Bytes of memory for one byte of encoded write at most: a page is at least half full, and all the
  /// keys of a path may be new.
  private static let growth = 4

  var isLimited: Bool { limit != nil }

  /// - Complexity: O(1); over the limit O(pages of what was removed).
  mutating func admitted(_ write: Write, encodedByteCount: Int, replaced: ArraySlice<Change>) {
    guard let limit else { return }
    if !write.onlyRemoves {
      addedSince += (encodedByteCount + 16) * Self.growth
    } else if measured > limit {
      // Rather too much: a measure too early costs time, one that never came would refuse for ever.
      for change in replaced {
        removedSince += (change.replaced.memory().byteCount + 64) * Self.growth
      }
    }
  }

  /// Why `write` may not be admitted, or nil. Removals always may.
  mutating func refusal(for write: Write, root: Node) -> EngineError? {
    guard let limit, !write.onlyRemoves else { return nil }
    let isDue =
      measured > limit
      ? removedSince >= measured - limit : addedSince > max(limit - measured, limit / 64)
    if isDue {
      measured = root.memory().byteCount
      measureCount += 1
      addedSince = 0
      removedSince = 0
    }
    return measured > limit ? .memoryLimit(bytes: measured, limit: limit) : nil
  }
}

extension Write {
  /// Whether the write can only make the tree smaller.
  fileprivate var onlyRemoves: Bool {
    switch self {
    case .remove: return true
    case .set(_, let node): return node.isEmpty
    case .update(_, let entries):
      return entries.allSatisfy {
        switch $0.action {
        case .remove: return true
        case .set(let node): return node.isEmpty
        default: return false
        }
      }
    case .increment, .setPriority: return false
    }
  }
}
