package import DendroTree

/// Writes the writes of a record of format version 1, one after the other.
///
/// | field | size |
/// | --- | --- |
/// | milliseconds since the write before; for the first, since the record's base time | varint |
/// | kind | 1 |
/// | path, shared with the write before | see the article <doc:WriteFormat> |
/// | body | by kind |
package enum LogV1Writer {
  /// Appends the head of a write: the part that depends on the write before it.
  ///
  /// - Parameter previous: the stored path of the write before; empty for the first of a record.
  @inline(__always)
  package static func appendHead(
    of write: WriteView, timeDelta: UInt64, after previous: UnsafeRawBufferPointer,
    to buffer: PayloadBuffer
  ) {
    buffer.appendVarint(timeDelta)
    buffer.append(write.kind.rawValue)
    BodyWriter.append(path: write.path, after: previous, to: buffer)
  }
}
