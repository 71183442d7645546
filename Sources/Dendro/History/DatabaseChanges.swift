import DendroEngine
import DendroStorage

/// The durable writes behind a given one: those of the past from the log, then each as it becomes durable.
///
/// Made by ``Database/changes(since:)`` and ``DatabaseReference/changes(since:)``. A consumer that
/// stores the last ``DatabaseChange/lsn`` that it handled can continue after it, in the same process or a
/// later one: no write is left out and none comes twice. A write that the disk refused never shows.
///
/// Not every number belongs to a change that is given: at a location the writes elsewhere are passed over, and everywhere
/// those that change no data, such as what `dendro serve` keeps for its clients. If nothing but such writes comes for a
/// long time, the number that a consumer has stored may fall out of the history, although it has missed nothing. It then
/// begins with a snapshot, as one that was too slow does.
///
/// | | |
/// | --- | --- |
/// | how far back | from every write in `Database.historyRange()` on, and a little further if the log happens to reach; else ``DatabaseError/Code/outOfHistory`` with the range is thrown, as for a number that no write has yet |
/// | a slow consumer | delays no writer, and keeps a page of the log in memory. What it has not read stays on the disk for it as long as that is up to 256 MiB of log beyond what ``DatabaseOptions/history`` keeps |
/// | the end | when the task is cancelled, when the database is closed; of a database opened for reading only, behind the last write that is known to be durable |
/// | errors | ``DatabaseError``: the files cannot be read, the reference is bad, the database was closed before, or is in memory and has no log. Nothing comes after one |
///
/// The database stays open while the sequence is held. Each iterator starts behind the same write; an
/// iterator is for one task at a time.
public struct DatabaseChanges: AsyncSequence, Sendable {
  /// A write.
  public typealias Element = DatabaseChange

  private let ref: DatabaseReference
  private let lsn: LogSequenceNumber

  init(_ ref: DatabaseReference, since lsn: LogSequenceNumber) {
    self.ref = ref
    self.lsn = lsn
  }

  /// Begins behind the given write.
  public func makeAsyncIterator() -> AsyncIterator { AsyncIterator(ref, lsn) }

  /// Reads the log a page at a time.
  public struct AsyncIterator: AsyncIteratorProtocol, Sendable {
    private let ref: DatabaseReference
    private let lsn: LogSequenceNumber
    private var reader: ChangeReader?
    private var page: ArraySlice<LoggedWrite> = []
    private var isEnded = false

    fileprivate init(_ ref: DatabaseReference, _ lsn: LogSequenceNumber) {
      self.ref = ref
      self.lsn = lsn
    }

    /// Waits for the next write without blocking a thread. Nil at the end.
    public mutating func next() async throws -> DatabaseChange? {
      if page.isEmpty, !isEnded {
        do {
          page = try await read()
        } catch {
          isEnded = true
          throw error
        }
        isEnded = page.isEmpty
      }
      // A page that was read before a cancellation is dropped, since its consumer has stopped.
      if Task.isCancelled { (page, isEnded) = ([], true) }
      if isEnded { reader = nil }
      return page.popFirst().map { DatabaseChange($0, in: ref.owner) }
    }

    private mutating func read() async throws(DatabaseError)
      -> ArraySlice<LoggedWrite>
    {
      // An iterator that has begun ends when the database is closed; one that begins later throws.
      let engine = reader == nil ? try ref.keeping() : nil
      do throws(EngineError) {
        if let engine { reader = try engine.changes(since: lsn, at: ref.location) }
        return try await reader?.next()?[...] ?? []
      } catch {
        throw DatabaseError(error)
      }
    }
  }
}
