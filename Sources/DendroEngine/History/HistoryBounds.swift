package import DendroStorage
package import DendroTree

/// The states that can be read: those after each write from `oldest` to `newest`.
package struct HistoryBounds: Hashable, Sendable, CustomStringConvertible {
  /// The oldest write whose state can be read; zero, the empty tree, if the log begins with write 1.
  package var oldest: LogSequenceNumber
  /// Milliseconds since 1970; nil for write 0.
  package var oldestTime: Int64?
  /// The last admitted write.
  package var newest: LogSequenceNumber
  /// Milliseconds since 1970; nil for write 0.
  package var newestTime: Int64?

  package init(
    oldest: LogSequenceNumber, oldestTime: Int64?, newest: LogSequenceNumber, newestTime: Int64?
  ) {
    (self.oldest, self.oldestTime) = (oldest, oldestTime)
    (self.newest, self.newestTime) = (newest, newestTime)
  }

  package var description: String {
    oldest == newest
      ? "the only state that can be read is that after write \(newest)"
      : "the states that can be read are those after the writes \(oldest) to \(newest)"
  }
}

/// A state of the past.
package enum HistoryPoint: Hashable, Sendable, CustomStringConvertible {
  /// After this write.
  case lsn(LogSequenceNumber)
  /// After the last write that is not later than this: milliseconds since 1970.
  case time(Int64)

  package var description: String {
    switch self {
    case .lsn(let lsn): "the state after write \(lsn)"
    case .time(let time): "the state at \(time) ms since 1970"
    }
  }
}

/// The tree after a write.
package struct HistoryState: Sendable {
  package var roots: TreeRoots
  package var lsn: LogSequenceNumber
  /// Of the write, in milliseconds since 1970; 0 if that is not known.
  package var time: Int64

  /// The data.
  package var root: Node { roots.data }

  package init(roots: TreeRoots, lsn: LogSequenceNumber, time: Int64 = 0) {
    self.roots = roots
    self.lsn = lsn
    self.time = time
  }
}
