// A write that is kept in the second root: its kind, its path and its body as the log holds them, in one leaf of bytes, so
// that no limit of depth applies twice. Server values stay as they are, for the moment when the write is made.
//
// | field | size |
// | --- | --- |
// | kind | 1 |
// | bytes of the path | varint |
// | the stored path | as counted |
// | body | the rest |

extension EncodedWrite {
  /// The write as bytes to be kept. Its change of the second root and its origin are left out.
  ///
  /// - Complexity: O(size of the write).
  package var keptBytes: [UInt8] {
    prepare(isLogged: true)
    let target = PayloadBuffer(capacity: 16 + path.storedBytes.count + logByteCount)
    appendKept(to: target)
    return target.withBytes { Array($0) }
  }

  /// Appends the bytes of a write that is kept. The log holds a change of the second root in the same form.
  package func appendKept(to target: PayloadBuffer) {
    withView { view in
      target.append(view.kind.rawValue)
      target.appendVarint(view.path.count)
      target.append(view.path)
      view.withLogBody { target.append($0) }
    }
  }

  /// Reads a write that was kept; nil unless the bytes are one.
  ///
  /// - Parameters:
  ///   - bytes: as `keptBytes`.
  ///   - allowed: what it may have beside the data's values; `.bytes` for a change of the second root.
  package convenience init?(
    kept bytes: [UInt8], allowing allowed: BodyChecker.Allowed = .serverValues
  ) {
    let write = bytes.withUnsafeBytes { bytes -> (WriteKind, Path, PayloadBuffer, WriteFacts)? in
      guard let tag = bytes.first, let kind = WriteKind(rawValue: tag),
        let (pathByteCount, prefix) = Varint.read(bytes, at: 1),
        pathByteCount <= bytes.count - 1 - prefix
      else { return nil }
      var offset = 1 + prefix + pathByteCount
      let stored = UnsafeRawBufferPointer(rebasing: bytes[(1 + prefix)..<offset])
      guard let path = Path(storedBytes: stored), path.count <= Limits.depth else { return nil }
      let start = offset
      var checker = BodyChecker(allowing: allowed)
      guard
        let facts = checker.check(kind, bytes, at: &offset, depth: Limits.depth - path.count),
        offset == bytes.count
      else { return nil }
      let body = PayloadBuffer(capacity: offset - start)
      body.append(UnsafeRawBufferPointer(rebasing: bytes[start...]))
      return (kind, path, body, facts)
    }
    guard let (kind, path, body, facts) = write else { return nil }
    self.init(kind, at: path, body: body, trees: [], facts: facts)
  }
}

extension Node {
  /// A write to be kept: a leaf of bytes; a branch of several, in their order, if one has not room for it.
  package init(keeping write: EncodedWrite) {
    let bytes = write.keptBytes
    guard bytes.count > Limits.leafBytes else {
      self.init(.bytes(bytes))
      return
    }
    var builder = NodeBuilder()
    for (number, start) in stride(from: 0, to: bytes.count, by: Limits.leafBytes).enumerated() {
      let piece = bytes[start..<min(start + Limits.leafBytes, bytes.count)]
      _ = builder.append(String(number), .bytes(Array(piece)))
    }
    self = builder.finish()
  }

  /// The write that is kept here; nil unless there is one.
  package var keptWrite: EncodedWrite? {
    if case .bytes(let bytes) = scalar { return EncodedWrite(kept: bytes) }
    var bytes: [UInt8] = []
    for (_, piece) in children {
      guard case .bytes(let more) = piece.scalar else { return nil }
      bytes += more
    }
    return EncodedWrite(kept: bytes)
  }
}
