import DendroTree

/// Which chunks of a checkpoint are known to belong to a tree: those that were read, and those to which they refer.
///
/// Which of the other chunks are below a chunk that was not read is in no index; it is estimated from their order.
/// A chunk comes after those below it, and mostly directly after them.
struct ChunkVisibility: Sendable {
  private enum State: UInt8 {
    /// Only chunks that were not read refer to it, if any.
    case hidden
    /// A chunk that was read refers to it.
    case referred
    case read
  }

  private var states: [State]
  /// For each chunk the one that refers to it, if that is known.
  private var referrers: [UInt32]
  private(set) var unreadCount: Int

  init(chunkCount: Int) {
    states = Array(repeating: .hidden, count: chunkCount)
    referrers = Array(repeating: 0, count: chunkCount)
    unreadCount = chunkCount
  }

  /// Notes that a chunk was taken into the tree.
  ///
  /// - Returns: a chunk to which another one refers too, so that nothing was noted; nil if there is none.
  mutating func add(_ chunk: ChunkPages) -> UInt32? {
    for number in chunk.referredChunks
    where states[Int(number)] != .hidden && referrers[Int(number)] != chunk.number {
      return number
    }
    for number in chunk.referredChunks {
      if states[Int(number)] == .hidden { states[Int(number)] = .referred }
      referrers[Int(number)] = chunk.number
    }
    if states[Int(chunk.number)] != .read { unreadCount -= 1 }
    states[Int(chunk.number)] = .read
    return nil
  }

  /// The chunks that a tree needs and that were not read.
  ///
  /// - Parameter top: those of them to which pages refer that are in memory.
  func unreadChunks(below top: Set<UInt32>) -> [Int] {
    guard !top.isEmpty else { return [] }
    var isNeeded = false
    return states.indices.reversed().filter { number in
      if top.contains(UInt32(number)) {
        isNeeded = true
      } else if states[number] == .referred {
        // No page refers to it any more: what is below it was removed with it.
        isNeeded = false
      } else if states[number] == .read {
        return false
      }
      return isNeeded
    }
  }
}
