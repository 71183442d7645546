/// The pages of a chunk, decoded.
package struct ChunkPages: @unchecked Sendable {  // See `Page`.
  package let number: UInt32
  /// The numbers of the chunks to which its stubs refer; none if it was decoded without a source.
  package let referredChunks: [UInt32]
  /// The pages to which no page of the chunk refers, in the order of the chunk.
  let roots: [Root]
  /// The leaves in the pages.
  package let leafCount: Int
  /// The entries that refer to pages of other chunks and were left without a reference.
  let open: [OpenEntry]

  struct Root {
    var page: Page
    var shape: PageShape

    /// Whether this is what a page above refers to.
    func matches(_ reference: PageReference) -> Bool {
      let access = page.unresolved
      guard shape == reference.shape, access.total == reference.total else { return false }
      if access.kind != .box { return access.hasPriorities == reference.hasPriorities }
      return access.hasPriority(0) == reference.hasPriorities
        && access.value(0).count > Page.inlineValueByteCountMax
    }
  }

  /// An entry that has to get its reference.
  struct OpenEntry {
    var slot: UnsafeMutablePointer<Page?>
    var reference: PageReference
  }

  /// Decodes and checks the raw bytes of a chunk.
  ///
  /// - Parameters:
  ///   - bytes: what `PageImageWriter` wrote.
  ///   - number: the chunk's, which is more than that of each chunk to which it refers.
  ///   - source: where its stubs read the other chunks from; nil if `ChunkAssembler` connects them, or only their memory counts.
  ///   - allowsBytes: whether leaves may be bytes, as in the second root.
  /// - Complexity: O(bytes).
  package init(
    decoding bytes: UnsafeRawBufferPointer, number: UInt32, source: (any PageSource)?,
    allowsBytes: Bool = false
  ) throws(PageImageError) {
    var reader = PageImageReader(
      bytes, chunk: number, source: source, allowsBytes: allowsBytes)
    try reader.readAll()
    self.number = number
    roots = reader.unclaimed
    leafCount = reader.leafCount
    open = reader.open
    referredChunks = reader.referredChunks
  }

  /// Checks that the pages to which no page of the chunk refers are those that the page above refers to.
  func check(_ references: [PageReference]) throws(PageImageError) {
    guard roots.count == references.count else {
      throw PageImageError(
        expected: "\(references.count) pages, as the page above says", found: "\(roots.count)",
        offset: 0)
    }
    var isTaken = Array(repeating: false, count: roots.count)
    for reference in references {
      let place = reference.root
      guard place < roots.count, !isTaken[place], roots[place].matches(reference) else {
        throw .mismatch(reference)
      }
      isTaken[place] = true
    }
  }

  /// Whether this is certainly the last chunk of a tree: its root is in a box, and no other box has so short a value.
  package var isTop: Bool {
    guard roots.count == 1, roots[0].page.unresolved.kind == .box else { return false }
    return roots[0].page.unresolved.value(0).count <= Page.inlineValueByteCountMax
  }

  /// The tree whose last chunk this is.
  package func tree() throws(PageImageError) -> Node {
    guard roots.count == 1, let root = roots[0].page.rootInBox else {
      throw PageImageError(
        expected: "the root of the tree in the last chunk", found: "\(roots.count) pages", offset: 0
      )
    }
    return root
  }
}

extension Page {
  /// A box with the root of a tree, which need not be long.
  static func boxing(_ root: Node) -> Page {
    if case .page(let page) = root.content, page.kind == .box { return page }
    var bytes: [UInt8] = []
    var branch: Page?
    if let priority = root.priority {
      bytes.append(PackedScalar.priorityTag)
      PackedScalar.append(priority, to: &bytes)
    }
    switch root.content {
    case .page(let page):
      bytes.append(Pages.referenceTag)
      branch = page
    case .scalar(let scalar): PackedScalar.append(scalar, to: &bytes)
    case .empty: preconditionFailure("an empty node is never stored")
    }
    let box = Page.make(.box, hasReferences: branch != nil, capacity: bytes.count + 1 + 16)
    withUnsafeBytes(of: UInt8(0)) { none in
      box.unresolved.insert(
        at: 0, none.baseAddress.unsafelyUnwrapped, 0, valueCount: bytes.count, branch
      ).copyMemory(from: bytes, byteCount: bytes.count)
    }
    return box
  }

  /// The root of a tree in a box; nil if this is another page.
  fileprivate var rootInBox: Node? {
    let access = unresolved
    guard access.kind == .box else { return nil }
    return access.refers(0) || access.value(0).count > Page.inlineValueByteCountMax
      ? unboxed : withExtendedLifetime(self) { Pages.leaf(access.valueStart(0)) }
  }
}

/// Puts a tree together from all its chunks.
package struct ChunkAssembler: @unchecked Sendable {  // See `Page`.
  /// The pages of the chunks so far that no later page has taken yet.
  private var roots: [[ChunkPages.Root?]] = []
  private var last: ChunkPages?

  package init() {}

  /// Connects a chunk with those before it.
  ///
  /// - Parameter pages: decoded without a source; the chunks come in order.
  package mutating func append(_ pages: ChunkPages) throws(PageImageError) {
    for entry in pages.open {
      let reference = entry.reference
      let chunk = Int(reference.chunk)
      guard chunk < roots.count, reference.root < roots[chunk].count,
        let root = roots[chunk][reference.root], root.matches(reference)
      else { throw .mismatch(reference) }
      roots[chunk][reference.root] = nil
      entry.slot.pointee = root.page
    }
    roots.append(pages.roots)
    last = pages
  }

  /// The whole tree; the empty node if there was no chunk.
  package consuming func finish() throws(PageImageError) -> Node {
    guard let last else { return .empty }
    roots.removeLast()
    guard roots.allSatisfy({ $0.allSatisfy { $0 == nil } }) else {
      throw PageImageError(expected: "pages of the tree", found: "others", offset: 0)
    }
    return try last.tree()
  }
}
