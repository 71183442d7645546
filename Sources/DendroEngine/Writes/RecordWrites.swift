package import DendroStorage
import DendroTree

/// The writes of one record, for tools.
package struct RecordWrites: Sendable {
  package var writes: [LoggedWrite] = []
  /// The error of the first write that cannot be decoded; nil where all can. The writes before it are good.
  package var problem: String?

  /// - Parameter payload: raw, as `LogReader` and `LogCursor` hand it out.
  package init(_ record: RecordInfo, _ payload: UnsafeRawBufferPointer) {
    guard record.kind == .writes else { return }
    var reader = WriteReader(payload, firstLSN: record.firstLSN, baseTime: record.baseTime)
    do throws(CodingError) {
      for _ in 0..<record.count { writes.append(try reader.next()) }
      if !reader.isAtEnd { problem = Self.bytesBehind(record) }
    } catch {
      problem = "expected \(error.expected), found \(error.found)"
    }
  }

  /// The problem of a record that has more bytes than its writes.
  package static func bytesBehind(_ record: RecordInfo) -> String {
    "bytes behind the last of \(record.count) writes"
  }
}
