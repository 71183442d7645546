package import DendroStorage
import DendroTree

/// One write of the log and where it stands.
package struct InspectedWrite: Sendable {
  package var write: LoggedWrite
  /// The record that holds it.
  package var record: RecordInfo
  /// 0 for the record's first write.
  package var indexInRecord: Int
}

/// Reads a log for people. Changes nothing; works beside a writer and on damaged files.
package enum LogInspector {
  /// Every write that is still there, oldest first, up to the end or to the first damage.
  ///
  /// - Parameters:
  ///   - path: of the database's directory.
  ///   - lsn: where to begin; earlier segments are skipped.
  ///   - visit: called on this thread; what it throws ends the reading.
  /// - Returns: where the log ends; nil where there is none.
  /// - Throws: `.storage(.corrupt)` after everything before the damage was visited.
  package static func read(
    _ path: String, from lsn: LogSequenceNumber = LogSequenceNumber(1),
    environment: Environment = .system, visit: (InspectedWrite) throws(EngineError) -> Void
  ) throws(EngineError) -> LogEnd? {
    var visitError: EngineError?
    do throws(StorageError) {
      let directory = try DatabaseDirectory.open(
        WorkingDirectory.absolute(path), environment: environment, mode: .readOnly)
      defer { directory.close() }
      let contents = try directory.contents()
      guard !contents.isEmpty else { throw .notFound(path: directory.path) }
      let first = contents.segments.map(\.firstLSN).min() ?? LogSequenceNumber(1)
      let start = LogSequenceNumber(max(lsn, first).rawValue &- 1)
      return try LogReader.read(
        directory, contents: contents, after: start,
        provenDurable: contents.checkpoints.max() ?? .zero
      ) { (record, payload) throws(StorageError) in
        guard record.kind == .writes else { return }
        var reader = WriteReader(payload, firstLSN: record.firstLSN, baseTime: record.baseTime)
        for index in 0..<record.count {
          let write: LoggedWrite
          do throws(CodingError) {
            write = try reader.next()
          } catch {
            throw error.located(in: record)
          }
          guard write.lsn > start else { continue }
          do throws(EngineError) {
            try visit(InspectedWrite(write: write, record: record, indexInRecord: index))
          } catch {
            visitError = error
            throw .notFound(path: path)  // only to leave the reading
          }
        }
      }
    } catch {
      throw visitError ?? .storage(error)
    }
  }
}
