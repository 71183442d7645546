import DendroStorage
import Synchronization

/// The readers of the past, and how far back they read: retention leaves what they need.
///
/// Retention decides and removes while it holds the choice. A reader chooses its beginning and pins it under the
/// same lock, so that no file is removed in between. Both may wait for the disk. Moving and removing a pin does
/// not: a file that stays a moment too long is removed the next time.
final class HistoryPins: Sendable {
  enum Kind: Sendable {
    /// A state is rebuilt from there: the log behind it stays until that is done.
    case rebuilding
    /// A follower reads the log from there: it stays within a limit.
    case followed
  }

  struct ID: Hashable, Sendable { fileprivate var number: UInt64 }

  private struct State: Sendable {
    var pins: [UInt64: (kind: Kind, lsn: LogSequenceNumber)] = [:]
    var lastNumber: UInt64 = 0
  }

  /// Held while files are listed and removed. Taken before the state's lock.
  private let choice = Mutex(())
  private let state = Mutex(State())

  /// Pins what `choose` returns. Waits for the disk.
  func pin<Choice: Sendable>(
    _ kind: Kind,
    _ choose: () throws(StorageError) -> (lsn: LogSequenceNumber, choice: Choice)?
  ) throws(StorageError) -> (id: ID, choice: Choice)? {
    try choice.withLock { (_) throws(StorageError) in
      guard let (lsn, choice) = try choose() else { return nil }
      let number = state.withLock { state in
        state.lastNumber += 1
        state.pins[state.lastNumber] = (kind, lsn)
        return state.lastNumber
      }
      return (ID(number: number), choice)
    }
  }

  /// Any thread.
  func move(_ id: ID, to lsn: LogSequenceNumber) {
    state.withLock { $0.pins[id.number]?.lsn = lsn }
  }

  /// Any thread.
  func remove(_ id: ID) { _ = state.withLock { $0.pins.removeValue(forKey: id.number) } }

  /// Runs `body`, which may remove files, with what is pinned; no pin is added meanwhile. Waits for the
  /// disk.
  func withPins(
    _ body: (_ rebuilding: [LogSequenceNumber], _ followed: [LogSequenceNumber])
      throws(StorageError) -> Void
  ) throws(StorageError) {
    try choice.withLock { (_) throws(StorageError) in
      let pins = state.withLock { Array($0.pins.values) }
      try body(
        pins.filter { $0.kind == .rebuilding }.map(\.lsn),
        pins.filter { $0.kind == .followed }.map(\.lsn))
    }
  }
}
