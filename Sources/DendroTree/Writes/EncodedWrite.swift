/// One write, owned: what waits for admission, is kept, or is passed on.
///
/// Immutable but for the bytes for the log, which `prepare` makes if trees stand for them. Unchecked `Sendable`: one
/// thread has it at a time.
@usableFromInline
package final class EncodedWrite: @unchecked Sendable {
  package let kind: WriteKind
  package let path: Path
  package let facts: WriteFacts
  /// The body, in which numbers stand for `trees`.
  let body: PayloadBuffer
  /// What exists as pages: it is put into the tree as it is.
  package let trees: [Node]
  /// The body as the log holds it; nil if it has not been made, `body` itself if there are no trees.
  private var logBody: PayloadBuffer?
  /// The bytes of the body in the log; 0 if they were not counted.
  @usableFromInline package private(set) var logByteCount: Int
  /// What the same write changes in the second root; nil if nothing.
  package let system: EncodedWrite?
  /// Who made the write, if that is kept.
  package let origin: WriteOrigin?

  init(
    _ kind: WriteKind, at path: Path, body: PayloadBuffer, trees: [Node], facts: WriteFacts,
    system: EncodedWrite? = nil, origin: WriteOrigin? = nil
  ) {
    self.system = system
    self.origin = origin
    self.kind = kind
    self.path = path
    self.body = body
    self.trees = trees
    self.facts = facts
    logBody = trees.isEmpty ? body : nil
    logByteCount = trees.isEmpty ? body.count : 0
  }

  /// Makes a set whose bytes are long, of a branch or a string: its pages are made here, and not when it is applied.
  convenience init(setting bytes: UnsafeRawBufferPointer, at path: Path) {
    var next = bytes.baseAddress.unsafelyUnwrapped
    let tree = BodyBytes.node(&next, [], hasOrderedChildren: true)
    let body = PayloadBuffer()
    body.append(BodyTag.tree)
    body.appendVarint(0)
    self.init(.set, at: path, body: body, trees: [tree], facts: WriteFacts())
    let copy = PayloadBuffer(capacity: bytes.count)
    copy.append(bytes)
    logBody = copy
    logByteCount = bytes.count
  }

  /// The write of a view, to be kept: a copy, unless it has an owner already.
  package static func keeping(_ view: WriteView) -> EncodedWrite {
    if let owner = view.owner { return owner.takeUnretainedValue() }
    let body = PayloadBuffer(capacity: view.body.count)
    body.append(view.body)
    return EncodedWrite(
      view.kind, at: Path(trusted: view.path), body: body, trees: [], facts: view.facts)
  }

  /// Whether it has at most a thousand locations or so.
  package var isShort: Bool { trees.isEmpty && body.count <= 4096 }

  /// Calls `use` with the write, borrowed for the time of the call.
  package func withView<R>(_ use: (WriteView) -> R) -> R {
    withExtendedLifetime(self) {
      path.storedBytes.withUnsafeBytes { path in
        body.withBytes { use(WriteView(self, at: path, body: $0)) }
      }
    }
  }

  /// Calls `use` with the leaf that the write sets below the root, if it sets nothing else there, and the leaf has no
  /// priority: the view is valid during the call.
  ///
  /// - Returns: false for any other write.
  package func withLeaf(_ use: (NodeView) -> Void) -> Bool {
    guard kind == .set, !path.isRoot else { return false }
    return withExtendedLifetime(self) {
      body.withBytes { bytes in
        guard let start = bytes.baseAddress, BodyBytes.isPlainLeaf(start) else { return false }
        use(NodeView(packedLeaf: start))
        return true
      }
    }
  }

  /// Calls `use` with the body as the log holds it. `prepare` has made it.
  @usableFromInline
  func withLogBody<R>(_ use: (UnsafeRawBufferPointer) -> R) -> R {
    guard let logBody else { preconditionFailure("the bytes for the log were not made") }
    return logBody.withBytes(use)
  }

  /// Makes the bytes for the log, or counts them.
  ///
  /// - Parameter isLogged: whether there is a log to read them.
  /// - Complexity: O(size of the trees), the first time.
  package func prepare(isLogged: Bool) {
    system?.prepare(isLogged: isLogged)
    if logBody != nil { return }
    guard isLogged else {
      if logByteCount == 0 {
        logByteCount = trees.reduce(body.count) { $0 + BodyWriter.byteCount($1) }
      }
      return
    }
    let target = PayloadBuffer(capacity: 4096)
    withView { BodyWriter.append($0, to: target) }
    logBody = target
    logByteCount = target.count
  }
}

extension BodyWriter {
  /// Appends the body of a write with its trees in full.
  static func append(_ write: WriteView, to target: PayloadBuffer) {
    var next = write.body.baseAddress.unsafelyUnwrapped
    var copied = next
    let end = next + write.body.count
    func copy(to place: UnsafeRawPointer) {
      target.append(UnsafeRawBufferPointer(start: copied, count: place - copied))
    }
    func appendTrees(in node: UnsafeRawPointer) {
      // Trees stand for whole values: only the beginning of a value has to be looked at.
      guard node.load(as: UInt8.self) == BodyTag.tree else { return }
      copy(to: node)
      var behind = node
      append(BodyBytes.node(&behind, write.trees, hasOrderedChildren: true), to: target)
      copied = behind
    }
    if write.kind == .set {
      appendTrees(in: next)
    } else if write.kind == .update {
      let (count, prefix) = Varint.readTrusted(next)
      next += prefix
      for _ in 0..<count {
        guard let kind = WriteKind(rawValue: next.load(as: UInt8.self)) else {
          preconditionFailure("the kind of an entry was checked")
        }
        let (_, sharedPrefix) = Varint.readTrusted(next + 1)
        let (rest, restPrefix) = Varint.readTrusted(next + 1 + sharedPrefix)
        next += 1 + sharedPrefix + restPrefix + rest
        if kind == .set { appendTrees(in: next) }
        next = BodyBytes.valueEnd(kind, next)
      }
    }
    copy(to: end)
  }

  /// The bytes of a count, as of children or of a key's bytes.
  package static func byteCount(ofCount count: Int) -> Int { Varint.byteCount(count) }

  /// The bytes that `append(_:to:)` appends for a node.
  package static func byteCount(_ node: Node) -> Int {
    if let count = node.packedLeafByteCount { return count }
    if node.isEmpty { return 1 }
    var count = 1 + Varint.byteCount(node.childCount)
    if let priority = node.priority { count += PackedScalar.byteCount(priority) }
    if node.withStoredLeaves({ count += $0.count }) { return count }
    node.forEachChild { key, child in
      let keyByteCount = key.orderedByteCount
      count += Varint.byteCount(keyByteCount) + keyByteCount + byteCount(child)
    }
    return count
  }
}
