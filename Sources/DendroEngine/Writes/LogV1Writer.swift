package import DendroTree

/// Writes the writes of a record of format version 1, one after the other.
///
/// | field | size |
/// | --- | --- |
/// | milliseconds since the write before; for the first, since the record's base time | varint |
/// | kind, with flags for what else there is | 1 |
/// | origin | only with its flag |
/// | path, shared with the write before | see the article <doc:WriteFormat> |
/// | body | by kind |
/// | change of the second root | only with its flag |
package enum LogV1Writer {
  /// Set in the kind of a write that has an origin.
  static let originFlag: UInt8 = 0x10
  /// Set in the kind of a write that changes the second root.
  static let systemFlag: UInt8 = 0x20

  /// Appends the head of a write: the part that depends on the write before it.
  ///
  /// - Parameters:
  ///   - extras: what there is beside the change of the data.
  ///   - previous: the stored path of the write before; empty for the first of a record.
  @inline(__always)
  package static func appendHead(
    of write: WriteView, extras: EncodedWrite? = nil, timeDelta: UInt64,
    after previous: UnsafeRawBufferPointer, to buffer: PayloadBuffer
  ) {
    buffer.appendVarint(timeDelta)
    if let extras {
      appendKind(write.kind, extras, to: buffer)
    } else {
      buffer.append(write.kind.rawValue)
    }
    BodyWriter.append(path: write.path, after: previous, to: buffer)
  }

  @inline(never)
  private static func appendKind(
    _ kind: WriteKind, _ extras: EncodedWrite, to buffer: PayloadBuffer
  ) {
    buffer.append(
      kind.rawValue | (extras.origin == nil ? 0 : originFlag)
        | (extras.system == nil ? 0 : systemFlag))
    guard let origin = extras.origin else { return }
    buffer.appendVarint(origin.client.count)
    origin.client.withUnsafeBytes { buffer.append($0) }
    buffer.appendVarint(origin.number)
  }

  /// The bytes that the extras of a write take at most.
  static func byteCountMax(of extras: EncodedWrite) -> Int {
    var count = 0
    if let origin = extras.origin { count += 20 + origin.client.count }
    if let system = extras.system {
      count += 11 + system.path.storedBytes.count + system.logByteCount
    }
    return count
  }
}
