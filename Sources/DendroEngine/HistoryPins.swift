import DendroStorage
import Synchronization

/// Who reads the past, and how far back: retention asks it what it must leave.
///
/// Retention decides and removes under its lock, and whoever begins to read chooses under it, so that
/// nothing goes between the choice and the pin. Held while files are listed and removed: not for threads
/// that may not wait for the disk.
final class HistoryPins: Sendable {
  enum Kind: Sendable {
    /// A state is rebuilt from there: the log behind it stays until that is done.
    case rebuilding
    /// Somebody follows the log from there: it stays within a limit.
    case followed
  }

  struct ID: Hashable, Sendable { fileprivate var number: UInt64 }

  private struct State: Sendable {
    var pins: [UInt64: (kind: Kind, lsn: LogSequenceNumber)] = [:]
    var lastNumber: UInt64 = 0
  }

  private let state = Mutex(State())

  /// Pins what `choose` returns.
  func pin<Choice: Sendable>(
    _ kind: Kind,
    _ choose: () throws(StorageError) -> (lsn: LogSequenceNumber, choice: Choice)?
  ) throws(StorageError) -> (id: ID, choice: Choice)? {
    try state.withLock { (state) throws(StorageError) in
      guard let (lsn, choice) = try choose() else { return nil }
      state.lastNumber += 1
      state.pins[state.lastNumber] = (kind, lsn)
      return (ID(number: state.lastNumber), choice)
    }
  }

  func move(_ id: ID, to lsn: LogSequenceNumber) {
    state.withLock { $0.pins[id.number]?.lsn = lsn }
  }

  func remove(_ id: ID) { _ = state.withLock { $0.pins.removeValue(forKey: id.number) } }

  /// Runs `body`, which may remove files, with what is pinned, while nobody pins anything.
  func withPins(
    _ body: (_ rebuilding: [LogSequenceNumber], _ followed: [LogSequenceNumber])
      throws(StorageError) -> Void
  ) throws(StorageError) {
    try state.withLock { (state) throws(StorageError) in
      let pins = state.pins.values
      try body(
        pins.filter { $0.kind == .rebuilding }.map(\.lsn),
        pins.filter { $0.kind == .followed }.map(\.lsn))
    }
  }
}
