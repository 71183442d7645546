import DendroEngine
import DendroStorage
import DendroTree
public import Foundation

extension Database {
  /// Which states of the past can be read by ``DatabaseQuery/snapshot(at:)-(Database.LSN)``, and followed from by
  /// ``changes(since:)``.
  ///
  /// A database in memory has its present state only. Waits for the disk.
  ///
  /// - Throws: ``DatabaseError`` if the directory cannot be read, or the database is closed.
  public func historyRange() throws -> HistoryRange {
    let engine = try keeping()
    do throws(EngineError) {
      return HistoryRange(try engine.historyRange())
    } catch {
      throw DatabaseError(error)
    }
  }

  /// `historyRange()` without blocking a thread.
  public func historyRange() async throws -> HistoryRange {
    let engine = try keeping()
    do throws(EngineError) {
      return HistoryRange(try await engine.historyRange())
    } catch {
      throw DatabaseError(error)
    }
  }

  /// Follows the durable writes behind write `lsn`, in their order and without a gap: first those that
  /// the log has, then each as it becomes durable.
  ///
  /// - Parameter lsn: the last write that the caller knows, such as the ``DatabaseChange/lsn`` that it
  ///   handled last; 0 for all. See ``DatabaseChanges`` for how far back, and how it ends.
  public func changes(since lsn: Database.LSN) -> DatabaseChanges {
    reference().changes(since: lsn)
  }

  /// Removes the past from the disk: when it returns, no file holds what was removed from the tree before
  /// the call.
  ///
  /// A checkpoint of the tree is written and read back; then all older checkpoints, the log before it, and
  /// the files that recoveries quarantined are deleted (and not overwritten). Writers and readers continue
  /// meanwhile. `historyRange()` then begins at that checkpoint, which is the only one until the next.
  /// Backups are not changed. Data that would still be read from an older checkpoint (``DatabaseOptions/loading``) is
  /// read into memory before.
  ///
  /// It waits for the readers that it would harm: until no process has the directory open for reading, and until every
  /// archive that is being extended (``DatabaseArchive``, `dendro archive`) has copied all writes before the call. Databases that
  /// follow this one are not waited for: they show the newest state.
  ///
  /// - Parameter limit: how long it waits. Automatic checkpoints wait as long. Default: 10 s.
  /// - Throws: ``DatabaseError``: ``DatabaseError/Code/locked`` if one of them is still in the way then. Beside
  ///   an archive nothing was deleted that it needs; beside a reader perhaps not everything, and the next call deletes
  ///   the rest. Also if the disk refuses, or if the database is closed or read-only.
  public func purgeHistory(waiting limit: Duration = .seconds(10)) throws {
    let engine = try keeping()
    do throws(EngineError) {
      try engine.purgeHistory(Purge(limit: limit))
    } catch {
      throw DatabaseError(error)
    }
  }

  /// `purgeHistory(waiting:)` without blocking a thread.
  public func purgeHistory(waiting limit: Duration = .seconds(10)) async throws {
    let engine = try keeping()
    do throws(EngineError) {
      try await engine.purgeHistory(Purge(limit: limit))
    } catch {
      throw DatabaseError(error)
    }
  }

  /// The tree at a point of the past.
  func root(at point: HistoryPoint) async throws -> Node {
    let engine = try keeping()
    do throws(EngineError) {
      if let root = try await engine.root(at: point) { return root }
    } catch {
      throw DatabaseError(error)
    }
    throw CancellationError()
  }
}

extension DatabaseQuery {
  /// What was here after write `lsn`: of a query, the children that it shows, in its order.
  ///
  /// The last admitted write gives the present, durable or not, at once. Every other state is rebuilt
  /// from the files: from the nearest checkpoint before it and the log up to it, beside the writers. It
  /// takes up to about as long as opening, and the memory of one more tree until it returns. One state of
  /// a database is rebuilt at a time; other callers wait. A state that is not yet on the disk is brought
  /// there first. Writes that the disk then refuses are undone, even if a reader has seen them.
  ///
  /// - Parameter lsn: in `Database.historyRange()`; 0 is the empty tree before the first write.
  /// - Throws: ``DatabaseError``: ``DatabaseError/Code/outOfHistory`` with the range; if the files
  ///   cannot be read, the reference is bad or the database closed. `CancellationError` once the task is
  ///   cancelled.
  public func snapshot(at lsn: Database.LSN) async throws -> DataSnapshot {
    try await snapshot(at: .lsn(LogSequenceNumber(lsn)))
  }

  /// What was here after the last write that was admitted at `date` or before, to the millisecond.
  ///
  /// A date behind the last write gives the present. As ``snapshot(at:)-(Database.LSN)`` otherwise.
  public func snapshot(at date: Date) async throws -> DataSnapshot {
    guard let time = HistoryTime.milliseconds(date) else {
      throw DatabaseError(.invalidArgument, "InvalidArgumentError", "the date is not a number")
    }
    return try await snapshot(at: .time(time))
  }

  private func snapshot(at point: HistoryPoint) async throws
    -> DataSnapshot
  {
    _ = try keeping()
    return await snapshot(showing: try await owner.root(at: point).node(at: location), isPast: true)
  }
}

extension DatabaseReference {
  /// ``Database/changes(since:)`` with only those writes that take place here, above or below: those that
  /// may have changed what is here.
  public func changes(since lsn: Database.LSN) -> DatabaseChanges {
    DatabaseChanges(self, since: LogSequenceNumber(lsn))
  }
}
