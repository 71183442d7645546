package import DendroStorage
package import DendroTree
import Dispatch
import Synchronization

extension Engine {
  /// Which states of the past can be read. Waits for the disk, but not for a write.
  package func historyRange() throws(EngineError) -> HistoryBounds {
    guard let history else { return headRange }
    do throws(StorageError) {
      return try history.range()
    } catch {
      throw .storage(error)
    }
  }

  /// `historyRange()` without blocking a thread.
  @concurrent package func historyRange() async throws(EngineError) -> HistoryBounds {
    guard let history else { return headRange }
    let result = await withUnsafeContinuation { continuation in
      history.reading.async {
        continuation.resume(
          returning: Result { () throws(EngineError) in try self.historyRange() })
      }
    }
    return try result.get()
  }

  /// The tree at a point of the past, and the write after which it was so.
  ///
  /// For the head, the present root is returned, durable or not. If another state is not yet on the disk,
  /// everything admitted so far is synchronized first.
  ///
  /// - Parameters:
  ///   - point: from `historyRange()`; a time behind the last write is the head.
  ///   - isCancelled: called after each record, on the calling thread.
  /// - Returns: nil if `isCancelled` has returned true.
  /// - Throws: `.outOfHistory`, which names the range; `.storage`; `.closed`.
  /// - Complexity: O(checkpoint + log since). Waits for the disk on the calling thread.
  package func state(
    at point: HistoryPoint, isCancelled: () -> Bool = { false }
  ) throws(EngineError) -> HistoryState? {
    if isForked { throw .forked }
    guard let history else {
      let range = headRange
      let isHead =
        switch point {
        case .lsn(let lsn): lsn == range.newest
        case .time(let time): time >= range.newestTime ?? .min
        }
      guard isHead else { throw .outOfHistory(point, range) }
      return HistoryState(
        roots: pipeline.withAdmission { $0.roots }, lsn: range.newest)
    }
    if history.isClosed { throw .closed }
    let state: HistoryState?
    do throws(EngineError) {
      state = try history.state(at: point, isCancelled: isCancelled)
    } catch {
      // After closing, another opener may be changing the files.
      if history.isClosed { throw .closed }
      throw error
    }
    if state == nil, history.isClosed { throw .closed }
    return state
  }

  /// The tree of `state(at:)`.
  package func root(
    at point: HistoryPoint, isCancelled: () -> Bool = { false }
  ) throws(EngineError) -> Node? {
    try state(at: point, isCancelled: isCancelled)?.root
  }

  /// `root(at:)` on the queue `History.rebuilding`, one state at a time; nil if the task was cancelled.
  @concurrent package func root(at point: HistoryPoint) async throws(EngineError) -> Node? {
    guard let history, !isForked else { return try root(at: point, isCancelled: { false }) }
    let flag = CancellationFlag()
    let result = await withTaskCancellationHandler {
      await withUnsafeContinuation { continuation in
        history.rebuilding.async {
          continuation.resume(
            returning: Result { () throws(EngineError) in
              flag.isSet ? nil : try self.root(at: point, isCancelled: { flag.isSet })
            })
        }
      }
    } onCancel: {
      flag.set()
    }
    return try result.get()
  }

  /// Follows the durable writes from behind a write on.
  ///
  /// - Parameters:
  ///   - lsn: the last write that the caller knows; zero for all.
  ///   - path: only writes that change data here, above or below.
  /// - Throws: `.noHistory` in memory; `.closed`. If the log begins behind `lsn`, the first page throws.
  package func changes(since lsn: LogSequenceNumber, at path: Path = .root) throws(EngineError)
    -> ChangeReader
  {
    if isForked { throw .forked }
    guard let history else { throw .noHistory }
    if history.isClosed { throw .closed }
    return ChangeReader(history, since: lsn, path: path)
  }
}

private final class CancellationFlag: Sendable {
  private let value = Atomic<Bool>(false)
  var isSet: Bool { value.load(ordering: .relaxed) }
  func set() { value.store(true, ordering: .relaxed) }
}
