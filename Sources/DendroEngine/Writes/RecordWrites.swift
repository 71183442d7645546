package import DendroStorage
import DendroTree

/// The writes of one record, as a list for tools, and one after the other.
package struct RecordWrites: Sendable {
  package var writes: [LoggedWrite] = []
  /// The error of the first write that cannot be decoded; nil if all can. The writes before it are good.
  package var problem: String?

  /// - Parameter payload: raw, as `LogReader` and `LogCursor` hand it out.
  package init(_ record: RecordInfo, _ payload: UnsafeRawBufferPointer) {
    var writes: [LoggedWrite] = []
    problem = Self.forEach(record, payload) { write in
      writes.append(write)
      return true
    }
    self.writes = writes
  }

  /// Decodes the writes one after the other. A record can have so many that a list of them would take many times the
  /// memory of its bytes.
  ///
  /// - Parameters:
  ///   - payload: raw, as `LogReader` and `LogCursor` hand it out.
  ///   - body: gets each write, and returns whether it wants the next one.
  /// - Returns: the error of the first write that cannot be decoded, or of bytes behind the last one; nil if there
  ///   is none, and if `body` has returned false.
  package static func forEach<E: Error>(
    _ record: RecordInfo, _ payload: UnsafeRawBufferPointer,
    _ body: (LoggedWrite) throws(E) -> Bool
  ) throws(E) -> String? {
    guard record.kind == .writes else { return nil }
    var reader = WriteReader(payload, firstLSN: record.firstLSN, baseTime: record.baseTime)
    for _ in 0..<record.count {
      let write: LoggedWrite
      do throws(CodingError) {
        write = try reader.next()
      } catch {
        return problem(error)
      }
      guard try body(write) else { return nil }
    }
    return reader.isAtEnd ? nil : bytesBehind(record)
  }

  /// Why the writes cannot be read; nil if they can.
  package static func problem(
    _ record: RecordInfo, _ payload: UnsafeRawBufferPointer
  ) -> String? {
    forEach(record, payload) { _ in true }
  }

  static func problem(_ error: CodingError) -> String {
    "expected \(error.expected), found \(error.found)"
  }

  /// The problem of a record that has more bytes than its writes.
  package static func bytesBehind(_ record: RecordInfo) -> String {
    "bytes behind the last of \(record.count) writes"
  }
}
