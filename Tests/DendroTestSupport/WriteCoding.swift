package import DendroTree

/// The bytes of writes in a record, from writes that exist as values.
package enum WriteCoding {
  /// Appends what depends on the write before.
  package static func encodeHead(
    of write: Write, timeDelta: UInt64, previousPath: Path, into buffer: PayloadBuffer
  ) {
    let kind: WriteKind =
      switch write {
      case .remove: .remove
      case .set: .set
      case .increment: .increment
      case .setPriority: .setPriority
      case .update: .update
      }
    buffer.appendVarint(timeDelta)
    buffer.append(kind.rawValue)
    write.path.withStoredBytes { path in
      previousPath.withStoredBytes { BodyWriter.append(path: path, after: $0, to: buffer) }
    }
  }

  /// Appends what depends on the write alone.
  package static func encodeBody(of write: Write, into buffer: PayloadBuffer) {
    let encoded = EncodedWrite(write)
    encoded.prepare(isLogged: true)
    encoded.withView { view in view.withLogBody { buffer.append($0) } }
  }
}
