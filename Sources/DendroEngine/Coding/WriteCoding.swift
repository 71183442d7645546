import DendroStorage
package import DendroTree

/// Writes in a record's payload, one after the other.
///
/// | field | size |
/// | --- | --- |
/// | milliseconds since the write before; for the first, since the record's base time | varint |
/// | kind | 1 |
/// | path, shared with the write before | see the article <doc:WriteFormat> |
/// | body | by kind |
///
/// | kind | body |
/// | --- | --- |
/// | 0 remove | nothing |
/// | 1 set | the node |
/// | 2 increment | the delta, a packed integer or double |
/// | 3 set priority | 0, or 1 and the packed priority |
/// | 4 update | the count of entries as a varint; each: kind (0 to 3), path relative to the update's, shared with the entry before, body by kind |
package enum WriteCoding {
  enum Kind {
    static let remove: UInt8 = 0
    static let set: UInt8 = 1
    static let increment: UInt8 = 2
    static let setPriority: UInt8 = 3
    static let update: UInt8 = 4
  }

  /// Whether encoding the body may take long: anything but one scalar.
  static func mayBeLarge(_ write: Write) -> Bool {
    switch write {
    case .set(_, let node):
      guard let count = node.packedLeafByteCount else { return !node.isEmpty }
      return count > 1024
    case .update: return true
    case .remove, .increment, .setPriority: return false
    }
  }

  /// The part that depends on the write before.
  package static func encodeHead(
    of write: Write, timeDelta: UInt64, previousPath: Path, into buffer: PayloadBuffer
  ) {
    previousPath.storedBytes.withUnsafeBytes {
      encodeHead(of: write, timeDelta: timeDelta, after: $0, into: buffer)
    }
  }

  /// - Parameter previous: the stored path of the write before; so below.
  static func encodeHead(
    of write: Write, timeDelta: UInt64, after previous: UnsafeRawBufferPointer,
    into buffer: PayloadBuffer
  ) {
    let kind =
      switch write {
      case .remove: Kind.remove
      case .set: Kind.set
      case .increment: Kind.increment
      case .setPriority: Kind.setPriority
      case .update: Kind.update
      }
    buffer.appendVarint(timeDelta)
    write.path.storedBytes.withUnsafeBytes {
      encodeKind(of: kind, $0, after: previous, into: buffer)
    }
  }

  /// The head of an update.
  static func encodeHead(
    updating path: UnsafeRawBufferPointer, timeDelta: UInt64,
    after previous: UnsafeRawBufferPointer, into buffer: PayloadBuffer
  ) {
    buffer.appendVarint(timeDelta)
    encodeKind(of: Kind.update, path, after: previous, into: buffer)
  }

  /// The kind and the path of a write, or of an update's entry.
  static func encodeKind(
    of kind: UInt8, _ path: UnsafeRawBufferPointer, after previous: UnsafeRawBufferPointer,
    into buffer: PayloadBuffer
  ) {
    buffer.append(kind)
    PathCoding.encode(path, after: previous, into: buffer)
  }

  /// The write of one leaf, whole.
  static func encode(
    _ edit: LeafEdit, at path: UnsafeRawBufferPointer, timeDelta: UInt64,
    after previous: UnsafeRawBufferPointer, into buffer: PayloadBuffer
  ) {
    buffer.appendVarint(timeDelta)
    switch edit {
    case .set(let packed):
      encodeKind(of: Kind.set, path, after: previous, into: buffer)
      buffer.append(packed)
    case .increment(let delta):
      encodeKind(of: Kind.increment, path, after: previous, into: buffer)
      ScalarCoding.encode(delta.scalar, into: buffer)
    }
  }

  /// The part that depends on the write alone.
  package static func encodeBody(of write: Write, into buffer: PayloadBuffer) {
    switch write {
    case .remove: break
    case .set(_, let node): NodeCoding.encode(node, into: buffer)
    case .increment(_, let delta): ScalarCoding.encode(delta.scalar, into: buffer)
    case .setPriority(_, let priority): encode(priority: priority, into: buffer)
    case .update(_, let entries):
      buffer.appendVarint(entries.count)
      var previous = Path.root
      for entry in entries {
        switch entry.action {
        case .remove: buffer.append(Kind.remove)
        case .set: buffer.append(Kind.set)
        case .increment: buffer.append(Kind.increment)
        case .setPriority: buffer.append(Kind.setPriority)
        }
        PathCoding.encode(entry.path, after: previous, into: buffer)
        previous = entry.path
        switch entry.action {
        case .remove: break
        case .set(let node): NodeCoding.encode(node, into: buffer)
        case .increment(let delta): ScalarCoding.encode(delta.scalar, into: buffer)
        case .setPriority(let priority): encode(priority: priority, into: buffer)
        }
      }
    }
  }

  private static func encode(priority: Scalar?, into buffer: PayloadBuffer) {
    guard let priority else { return buffer.append(0) }
    buffer.append(1)
    ScalarCoding.encode(priority, into: buffer)
  }
}
