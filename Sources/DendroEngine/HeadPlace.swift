package import DendroTree

/// A location of the head at one moment. Neither the pages on the way to its node nor those of the node need have
/// been read from the checkpoint.
package struct HeadPlace: Sendable {
  private let root: Node
  private let path: Path
  /// Nil if all pages are in memory.
  private let pages: CheckpointPages?
  /// The node; nil if pages on the way to it were not read yet.
  package let node: HeadNode?

  /// Makes one whose pages are all in memory.
  package init(_ node: Node) {
    root = .empty
    path = .root
    pages = nil
    self.node = HeadNode(node)
  }

  init(_ root: Node, _ path: Path, _ pages: CheckpointPages?) {
    self.path = path
    guard let pages, pages.isPartial else {
      self.root = .empty
      self.pages = nil
      node = HeadNode(root.node(at: path))
      return
    }
    self.root = root
    self.pages = pages
    let isLoaded = path.withStoredBytes { root.isLoaded(along: $0) }
    node = isLoaded ? HeadNode(root.node(at: path), pages) : nil
  }

  /// The node, for which the pages on the way to it are read. Waits for the disk on the calling thread.
  ///
  /// - Throws: why a page on the way could not be read.
  package func read() throws(EngineError) -> HeadNode {
    if let node { return node }
    let node = try pages?.reading { () throws(PageFailure) in
      try root.load(along: path)
      return root.node(at: path)
    }
    return HeadNode(node ?? .empty, pages)
  }

  /// The node, if it is in memory with all its pages; nil if the disk may have to be waited for.
  ///
  /// - Complexity: O(pages of the node); O(1) if all pages of the head are in memory.
  package var loadedNode: Node? { node.flatMap { $0.isLoaded ? $0.node : nil } }
}

extension Engine {
  /// The location at `path` now. Never waits for the disk.
  ///
  /// - Complexity: O(depth · log children).
  package func place(at path: Path) -> HeadPlace {
    nodeWithoutLock(at: path).map { HeadPlace($0) } ?? placeUnderLock(path)
  }

  func placeUnderLock(_ path: Path) -> HeadPlace {
    pipeline.withAdmission { admission in
      // All may have been read since the last change.
      admission.head.publish()
      return HeadPlace(admission.shownRoot, path, admission.pages)
    }
  }

  /// Runs `body` on a location of the head while no write is admitted. It has to be quick, and may not call the engine.
  package func withPlace<R: Sendable>(at path: Path, _ body: (HeadPlace) -> R) -> R {
    pipeline.withAdmission { body(HeadPlace($0.shownRoot, path, $0.pages)) }
  }
}
