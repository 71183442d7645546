import DendroStorage
import Synchronization

/// The positions of readers of the past: retention keeps the files behind them.
///
/// Retention decides and removes files while it holds the lock `choice`. A reader chooses the checkpoint that
/// it begins with and pins it under the same lock, so that no file is removed in between. Both may wait for
/// the disk. Moving and removing a pin do not: a file that is no longer needed is removed the next time.
final class HistoryPins: Sendable {
  enum Kind: Sendable {
    /// A state is rebuilt from the write: the log behind it is kept until that has ended.
    case rebuilding
    /// A follower has read the log up to the write: the log behind it is kept up to a limit.
    case followed
  }

  struct ID: Hashable, Sendable { fileprivate var number: UInt64 }

  private struct State: Sendable {
    var pins: [UInt64: (kind: Kind, lsn: LogSequenceNumber)] = [:]
    var lastNumber: UInt64 = 0
  }

  /// Held while files are listed and removed. Taken before `state`.
  private let choice = Mutex(())
  private let state = Mutex(State())

  /// Pins the write that `choose` returns. Waits for the disk.
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

  /// Moves a pin. Any thread may call it.
  func move(_ id: ID, to lsn: LogSequenceNumber) {
    state.withLock { $0.pins[id.number]?.lsn = lsn }
  }

  /// Removes a pin. Any thread may call it.
  func remove(_ id: ID) { _ = state.withLock { $0.pins.removeValue(forKey: id.number) } }

  /// Runs `body`, which may remove files, with the pinned writes; no pin is added meanwhile. Waits for the
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
