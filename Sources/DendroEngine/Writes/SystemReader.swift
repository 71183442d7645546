import DendroStorage
import DendroTree

/// Reads the change of the second root at the end of a write: kind, whole path, body.
struct SystemReader: ~Copyable {
  private var checker = BodyChecker(allowing: .bytes)
  private var kind = WriteKind.remove
  private var facts = WriteFacts()
  private var path = 0..<0
  private var body = 0..<0

  /// Checks the change that begins at the reader's offset, and moves the reader behind it.
  mutating func read(_ reader: inout ByteReader) throws(CodingError) {
    var decoded = reader
    let tag = try reader.tag("the kind of a change of the second root")
    let count = try reader.count("a path's length", limit: PathReader.byteLimit)
    let start = reader.offset
    let stored = try reader.take(count, "a path")
    guard let kind = WriteKind(rawValue: tag), let keyCount = Path.keyCount(validating: stored),
      keyCount <= Limits.depth
    else { throw Self.damage(&decoded) }
    self.kind = kind
    path = start..<reader.offset
    var end = reader.offset
    let facts = checker.check(kind, reader.bytes, at: &end, depth: Limits.depth - keyCount)
    guard let facts else { throw Self.damage(&decoded) }
    self.facts = facts
    body = reader.offset..<end
    _ = try reader.take(end - reader.offset, "a body")
  }

  /// The change that was read last.
  ///
  /// - Parameter bytes: those that the reader reads.
  func view(of bytes: UnsafeRawBufferPointer) -> WriteView {
    WriteView(
      kind, at: UnsafeRawBufferPointer(rebasing: bytes[path]),
      body: UnsafeRawBufferPointer(rebasing: bytes[body]), facts: facts)
  }

  private static func damage(_ reader: inout ByteReader) -> CodingError {
    do throws(CodingError) {
      _ = try WriteReader.system(&reader)
      return CodingError(expected: "a change of the second root", found: "bytes that are none")
    } catch {
      return error
    }
  }
}

extension ByteReader {
  /// Reads the origin of a write.
  mutating func origin() throws(CodingError) -> WriteOrigin {
    let count = try count("a client's id", limit: WriteOrigin.clientByteCountMax)
    let client = Array(try take(count, "a client's id"))
    do throws(ByteError) {
      return WriteOrigin(client: client, number: try varint())
    } catch {
      throw CodingError(expected: "the number of a client's write", found: error.description)
    }
  }
}
