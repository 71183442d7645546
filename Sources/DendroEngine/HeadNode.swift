package import DendroStorage
package import DendroTree

/// A node of the head, whose pages may not all have been read from the checkpoint yet.
package struct HeadNode: Sendable {
  package let node: Node
  /// Nil if all pages are in memory.
  private let pages: CheckpointPages?

  /// Makes one whose pages are all in memory.
  package init(_ node: Node) { self.init(node, nil) }

  init(_ node: Node, _ pages: CheckpointPages?) {
    self.node = node
    self.pages = pages.flatMap { $0.isPartial && !node.isLoadedAtAGlance ? $0 : nil }
  }

  /// Whether some pages may not have been read yet.
  package var isPartial: Bool { pages != nil }

  /// Whether all pages of the node are in memory. Never waits for the disk.
  ///
  /// - Complexity: O(pages); O(1) if all pages of the head are in memory.
  var isLoaded: Bool { pages == nil || node.isLoaded }

  /// Reads all pages of the node. Waits for the disk on the calling thread.
  ///
  /// - Returns: the node.
  /// - Complexity: O(pages); O(1) if all pages of the head are in memory.
  package func whole() throws(EngineError) -> Node {
    try pages?.reading { () throws(PageFailure) in try node.load() }
    return node
  }

  /// Calls `body`, which may read pages of the node, and reads all pages of the node that it returns.
  ///
  /// - Throws: why a page could not be read.
  package func whole(_ body: (Node) -> Node) throws(EngineError) -> Node {
    guard let pages else { return body(node) }
    return try pages.reading { () throws(PageFailure) in
      let result = body(node)
      try result.load()
      return result
    }
  }

  /// The tree after a write at its root, for which the pages are read that the write changes.
  ///
  /// - Throws: why one could not be read.
  package func applying(_ write: EncodedWrite, time: Int64) throws(EngineError) -> Node {
    try load(for: write)
    return node.applying(write, time: time)
  }

  /// Reads the pages that a write changes or needs for its server values.
  ///
  /// - Throws: why one could not be read.
  package func load(for write: EncodedWrite) throws(EngineError) {
    try pages?.reading { () throws(PageFailure) in
      try write.withView { view in Result { () throws(PageFailure) in try node.load(for: view) } }
        .get()
    }
  }

  /// Calls `body`, which reads the node. What it gets beside says whether all that it has read so far was there.
  ///
  /// - Throws: what `body` throws, or why a page could not be read, since `body` has seen an empty one then.
  package func reading<R>(_ body: (Node, ReadingCheck) throws -> R) throws -> R {
    guard let pages else { return try body(node, ReadingCheck(nil)) }
    var result: Result<R, any Error>?
    try withExtendedLifetime(pages) {
      try pages.reading { () throws(PageFailure) in
        result = Result { try body(node, ReadingCheck(pages)) }
      }
    }
    guard let result else { preconditionFailure("the body was called") }
    return try result.get()
  }
}

/// A state that stays as it is.
package struct PinnedHead: Sendable {
  package let node: HeadNode
  package let lsn: LogSequenceNumber
  /// The time that a write would have got then, in milliseconds since 1970.
  package let time: Int64
}

extension PinnedHead {
  /// Another tree in place of the head.
  package init(_ root: Node, inPlaceOf head: PinnedHead) {
    self.init(node: HeadNode(root), lsn: head.lsn, time: head.time)
  }
}

/// Whether all pages that were read since it was made could be read. Valid within the call of
/// `HeadNode.reading` alone, which keeps the source of the pages alive: no reference is counted.
package struct ReadingCheck {
  private let pages: Unmanaged<CheckpointPages>?
  private let failureCount: UInt64
  /// Whether there are pages that may have to be read.
  @usableFromInline let isNeeded: Bool

  fileprivate init(_ pages: CheckpointPages?) {
    self.pages = pages.map { Unmanaged.passUnretained($0) }
    failureCount = pages?.failureCount ?? 0
    isNeeded = pages != nil
  }

  /// The last error of a page; nil if there was none. Ask on the thread that reads.
  @inlinable
  package var failure: EngineError? { isNeeded ? lastFailure : nil }

  @usableFromInline
  var lastFailure: EngineError? {
    pages.flatMap { $0._withUnsafeGuaranteedRef { $0.failure(since: failureCount) } }
  }
}

extension Engine {
  /// The node at `path` now, with all its pages. It never changes, and stays valid after `close()`.
  ///
  /// - Throws: why a page could not be read from the checkpoint.
  /// - Complexity: O(depth · log children). Pages that were not read since opening are read on the calling
  ///   thread.
  package func view(at path: Path) throws(EngineError) -> Node { try node(at: path).whole() }

  /// Calls `body` with the head, to be read in place. Mostly without the admission lock.
  ///
  /// - Parameter body: gets beside it whether all that it has read so far was there.
  /// - Throws: what `body` throws, or why a page could not be read, since `body` has seen an empty one then.
  package func reading<R>(_ body: (NodeView, ReadingCheck) throws -> R) throws -> R {
    guard let reading = beginReading() else { return try readingUnderReference(body) }
    defer { end(reading) }
    return try body(reading.branch.view, ReadingCheck(nil))
  }

  /// Not inlined, since its generic types would be looked for at each reading.
  @inline(never)
  private func readingUnderReference<R>(
    _ body: (NodeView, ReadingCheck) throws -> R
  ) throws -> R {
    try node(at: .root).reading { root, check in
      try root.withView { view in
        if let failure = check.failure { throw failure }
        return try body(view, check)
      }
    }
  }

  /// The readers, of which no reference is counted: that would be what all of them write to.
  @inline(__always)
  private func withReaders<R>(_ body: (HeadReaders) -> R) -> R {
    Unmanaged.passUnretained(pipeline.readers)._withUnsafeGuaranteedRef(body)
  }

  /// Begins to read the head; nil if the admission lock has to be taken.
  @inline(__always)
  private func beginReading() -> HeadReaders.Reading? { withReaders { $0.begin() } }

  /// Ends a reading, and frees the trees that were kept for it and for no other one.
  @inline(__always)
  private func end(_ reading: HeadReaders.Reading) { withReaders { $0.end(reading) } }

  /// The node at `path` now.
  ///
  /// - Throws: why a page on the way could not be read.
  package func node(at path: Path) throws(EngineError) -> HeadNode {
    if let node = nodeWithoutLock(at: path) { return HeadNode(node) }
    return try placeUnderLock(path).read()
  }

  /// The node at `path` now; nil if the admission lock has to be taken.
  @inline(__always)
  func nodeWithoutLock(at path: Path) -> Node? {
    guard !path.isRoot, let reading = beginReading() else { return nil }
    defer { end(reading) }
    return reading.branch.node(at: path)
  }

  /// Reads the pages on the way to `path`, so that taking the node there reads nothing.
  package func load(along path: Path) throws(EngineError) { _ = try node(at: path) }

  /// The head with all its pages, and the LSN of its last write.
  package func wholeHead() throws(EngineError) -> (root: Node, lsn: LogSequenceNumber) {
    let (head, lsn) = pipeline.withAdmission { admission in
      (HeadNode(admission.shownRoot, admission.pages), admission.shownLSN)
    }
    return (try head.whole(), lsn)
  }
}
