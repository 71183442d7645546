import DendroEngine
import DendroStorage
public import Foundation

extension Database {
  /// Makes a new database of the state after write `lsn`.
  ///
  /// ```swift
  /// let archive = try await Database.open(readOnly: "/mnt/archive")
  /// try await archive.restore(at: lastGood, to: "/var/lib/app/restored")
  /// ```
  ///
  /// This database may be an archive (``DatabaseArchive``), a backup, or a live one with history; it is not
  /// changed. The new one begins with that state, and its next write is `lsn` + 1. As with `backup(to:parity:)`, a
  /// directory that was cut short does not open, and the next attempt starts over.
  ///
  /// - Parameters:
  ///   - lsn: in `historyRange()`.
  ///   - path: absolute or relative to the working directory; must not hold a database. It is made if it is
  ///     missing.
  /// - Returns: `lsn`.
  /// - Throws: ``DatabaseError``: ``DatabaseError/Code/outOfHistory`` with the range that can be read;
  ///   ``DatabaseError/Code/unavailable`` in memory; if the files cannot be read, or the new ones not written.
  @discardableResult
  public func restore(at lsn: LSN, to path: String) throws -> LSN {
    try restore(.lsn(LogSequenceNumber(lsn)), path)
  }

  /// `restore(at:to:)` on a thread of its own.
  @discardableResult
  public func restore(at lsn: LSN, to path: String) async throws -> LSN {
    try await BackgroundThread.run(.backup) { () throws(any Error) in
      try self.restore(at: lsn, to: path)
    }
  }

  /// Makes a new database of the state after the last write that was admitted at `date` or before, to the
  /// millisecond. A date behind the last write gives the last state. As `restore(at:to:)` otherwise.
  ///
  /// - Returns: the number of that write.
  @discardableResult
  public func restore(at date: Date, to path: String) throws -> LSN {
    guard let time = HistoryTime.milliseconds(date) else {
      throw DatabaseError(.invalidArgument, "InvalidArgumentError", "the date is not a number")
    }
    return try restore(.time(time), path)
  }

  /// `restore(at:to:)` of a date, on a thread of its own.
  @discardableResult
  public func restore(at date: Date, to path: String) async throws -> LSN {
    try await BackgroundThread.run(.backup) { () throws(any Error) in
      try self.restore(at: date, to: path)
    }
  }

  private func restore(_ point: HistoryPoint, _ path: String) throws -> LSN {
    let engine = try usable()
    let path = try Self.absolute(path)
    do throws(EngineError) {
      return try engine.restore(point, to: path).lsn.rawValue
    } catch {
      throw DatabaseError(error)
    }
  }
}
