import DendroEngine
import DendroStorage

/// Reads the records of a server's copy of the log.
struct CopyReader {
  /// Of the database.
  let path: String

  /// Calls `body` with each record behind a write, up to another one; its payload is lent for the time of the call.
  ///
  /// - Parameters:
  ///   - first: where a record ends.
  ///   - last: a write that is in the files.
  /// - Throws: `.engine(.storage(.corrupt))` if the files do not have the records, and what `body` throws.
  func records(
    behind first: LogSequenceNumber, upTo last: LogSequenceNumber,
    _ body: (SharedRecord) throws(ClusterError) -> Void
  ) throws(ClusterError) {
    var lsn = first
    var failure: ClusterError?
    do throws(StorageError) {
      let directory = try DatabaseDirectory.open(path, environment: .system, mode: .following)
      defer { directory.close() }
      let cursor = LogCursor(directory, after: first, isLive: true)
      while lsn < last, failure == nil {
        let isMore = try cursor.step { (item) throws(StorageError) in
          guard case .record(let record, _, let payload?) = item, record.kind == .writes,
            record.firstLSN == lsn.next, failure == nil
          else { return }
          do throws(ClusterError) {
            try body(
              SharedRecord(
                firstLSN: record.firstLSN, count: record.count, baseTime: record.baseTime,
                payload: payload))
          } catch {
            failure = error
          }
          lsn = record.lastLSN
        }
        if !isMore, lsn < last {
          throw .corrupt(
            path: path, offset: 0, expected: "write \(lsn.next)", found: "the end of the log")
        }
      }
    } catch {
      throw .engine(.storage(error))
    }
    if let failure { throw failure }
  }

  /// Calls `body` with each record that the files have up to a write, from the oldest one that is left on.
  ///
  /// - Parameter body: returns whether it wants the next one.
  func recordsThatAreLeft(
    upTo last: LogSequenceNumber, _ body: (SharedRecord) throws(ClusterError) -> Bool
  ) throws(ClusterError) {
    var failure: ClusterError?
    var isEnded = false
    do throws(StorageError) {
      let directory = try DatabaseDirectory.open(path, environment: .system, mode: .following)
      defer { directory.close() }
      let cursor = LogCursor(directory, isLive: true)
      var isMore = true
      while isMore, !isEnded {
        isMore = try cursor.step { (item) throws(StorageError) in
          guard case .record(let record, _, let payload?) = item, record.kind == .writes, !isEnded
          else { return }
          do throws(ClusterError) {
            isEnded = try !body(
              SharedRecord(
                firstLSN: record.firstLSN, count: record.count, baseTime: record.baseTime,
                payload: payload))
          } catch {
            failure = error
            isEnded = true
          }
          if record.lastLSN >= last { isEnded = true }
        }
      }
    } catch {
      throw .engine(.storage(error))
    }
    if let failure { throw failure }
  }
}
