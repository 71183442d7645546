/// Writes a tree as the chunks of a checkpoint: images of its pages.
///
/// A page comes after the pages below it. Pages below it that are in the same chunk are those to which no page
/// before it refers, the last ones in the order of its entries. The last page of the last chunk is a box with
/// the root of the tree.
///
/// | size | field |
/// | --- | --- |
/// | 1 | kind: 0 leaf page, 1 inner page, 2 box; bit 4: its entries may have references |
/// | varint | count of entries; not of a box, which has one |
/// | varint | bytes of the keys |
/// | varint | bytes of the values |
/// | that many | the keys, each with its length in front of it, as in a page |
/// | that many | the values, as in a page |
/// | varint | only with references: how many of the pages below are in other chunks; if this is not 0, then for each entry with a reference: |
/// | varint | 0 for a page of this chunk; 1 for a box, 2 for a leaf page, 2 + its level for an inner page, and then: |
/// | varint | the number of its chunk, which is less than this one's |
/// | varint | its place among the pages of that chunk to which no page of it refers |
/// | varint | 2 · the children in it or below it, + 1 if any of them has a priority, or the node in a box |
/// | varint | the keys on the longest path in it or below it |
///
/// The level of an inner page is 1 if leaf pages are below it, else one more than that of the pages below.
///
/// A chunk holds pages below one page: so a part of the tree can be read without the rest. That page refers to each page
/// of the chunk to which no page of it refers, once; the chunks to which a chunk refers are in ascending order.
package struct PageImageWriter {
  static let referencesFlag: UInt8 = 0x10
  /// The bytes of entries in a page that is not a box: an inner page may have as many long keys.
  static let pageByteCountMax = Page.innerSplitCountMin * 1_024
  /// A box may have a long string and a long priority.
  static let boxByteCountMax = 2 * (Limits.stringBytes + 1_024)
  static let totalMax = Int(UInt32.max >> 1)
  private let chunkByteLimit: Int

  /// The leaves so far.
  package private(set) var leafCount: UInt64 = 0
  private var chunkCount: UInt32 = 0
  /// The images of the pages that no chunk holds yet.
  private var images: [UInt8] = []
  /// The pages below the pages that are being written.
  private var below: [Below] = []
  private var content = NodeContent()
  /// The chunk of a stub that was read last.
  private var read: ChunkPages?

  private struct Below {
    var shape: PageShape
    var total: Int
    var hasPriorities: Bool
    /// Where the images of the page and those below it begin; nil if they are in a chunk.
    var start: Int?
    var chunk: UInt32 = 0
    var root = 0
  }

  /// - Parameter chunkByteLimit: the raw bytes after which a chunk is closed: enough to compress well, few
  ///   enough that a part of the tree is read quickly.
  package init(chunkByteLimit: Int = 128 << 10) { self.chunkByteLimit = chunkByteLimit }

  /// Writes a whole tree. Call once.
  ///
  /// - Parameters:
  ///   - root: the tree.
  ///   - hasher: gets the content of the tree, as by `Node.contentHash(using:)`.
  ///   - chunk: gets the raw bytes of each chunk, in order.
  /// - Throws: what `chunk` throws, or why a page could not be read.
  /// - Complexity: O(bytes). Pages that are not in memory are read and not kept.
  package mutating func write(
    _ root: Node, hasher: inout some ContentHasher,
    chunk: (UnsafeRawBufferPointer) throws(PageFailure) -> Void
  ) throws(PageFailure) {
    if root.isEmpty {
      content.appendEmpty()
    } else {
      let box = Page.boxing(root)
      _ = try append(box.unresolved, &hasher, chunk)
      withExtendedLifetime(box) {}
      try emit(images[...], chunk)
    }
    content.drain(into: &hasher, all: true)
  }

  // MARK: Pages

  private mutating func append(
    _ page: PageAccess, _ hasher: inout some ContentHasher,
    _ chunk: (UnsafeRawBufferPointer) throws(PageFailure) -> Void
  ) throws(PageFailure) -> Below {
    let start = images.count
    let first = below.count
    for index in 0..<page.count {
      if page.kind == .inner {
        below.append(try append(below: page.reference(index), &hasher, chunk))
      } else {
        try append(entry: index, of: page, &hasher, chunk)
      }
    }
    content.drain(into: &hasher)
    if images.count - start + Int(page.header.pointee.used) > chunkByteLimit {
      try close(from: first, chunk)
    }
    let keyCount = page.kind == .leaf ? 1 : 0
    var shape = PageShape(page.kind, depth: keyCount)
    for child in below[first...] {
      shape.depth = max(shape.depth, child.shape.depth + keyCount)
      if page.kind == .inner { shape.level = child.shape.level + 1 }
    }
    try check(page, shape)
    writeImage(of: page, first)
    below.removeSubrange(first...)
    return Below(
      shape: shape, total: page.total,
      hasPriorities: page.kind == .box ? page.hasPriority(0) : page.hasPriorities, start: start)
  }

  /// Throws if no reader would accept the image of a page: then there is no checkpoint, and the log is kept.
  private func check(_ page: PageAccess, _ shape: PageShape) throws(PageFailure) {
    let limit = page.kind == .box ? Self.boxByteCountMax : Self.pageByteCountMax
    let used = Int(page.header.pointee.used)
    guard used <= limit, shape.level <= PageShape.levelMax, shape.depth <= Limits.depth,
      page.total <= Self.totalMax
    else {
      throw PageFailure(
        PageImageError(
          expected:
            "a page of at most \(limit) bytes, \(PageShape.levelMax) levels and \(Self.totalMax) children",
          found: "\(used) bytes, \(shape.level) levels and \(page.total) children", offset: 0))
    }
  }

  private mutating func append(
    below slot: UnsafeMutablePointer<Page?>, _ hasher: inout some ContentHasher,
    _ chunk: (UnsafeRawBufferPointer) throws(PageFailure) -> Void
  ) throws(PageFailure) -> Below {
    let page = PageAccess(unresolved: slot)
    guard page.kind == .stub else { return try append(page, &hasher, chunk) }
    let stub = PageStub(page.header)
    if let loaded = stub.loadedPage { return try append(loaded, &hasher, chunk) }
    let transient = try stub.chunk.page(of: stub, &read)
    defer { withExtendedLifetime(transient) {} }
    return try append(transient.unresolved, &hasher, chunk)
  }

  private mutating func append(
    entry index: Int, of page: PageAccess, _ hasher: inout some ContentHasher,
    _ chunk: (UnsafeRawBufferPointer) throws(PageFailure) -> Void
  ) throws(PageFailure) {
    if page.kind == .leaf {
      let key = page.key(index)
      content.append(key: UnsafeRawBufferPointer(start: key.start, count: key.count))
    }
    guard page.hasReferences, page.refers(index) else {
      leafCount += 1
      return content.append(leaf: page.valueStart(index))
    }
    let reference = page.reference(index)
    let target = PageAccess(unresolved: reference)
    if target.resolvedKind != .box {
      content.append(branch: page.valueStart(index), childCount: target.total)
    }
    below.append(try append(below: reference, &hasher, chunk))
  }

  private mutating func writeImage(of page: PageAccess, _ first: Int) {
    images.append(page.kind.rawValue | (page.hasReferences ? Self.referencesFlag : 0))
    if page.kind != .box { Varint.append(page.count, to: &images) }
    var keyByteCount = 0
    for index in 0..<page.count { keyByteCount += page.valueOffset(index) - page.offset(index) }
    Varint.append(keyByteCount, to: &images)
    Varint.append(Int(page.header.pointee.used) - keyByteCount, to: &images)
    // The keys of one page are often those of the page before it: together they are one match for LZ4.
    for index in 0..<page.count {
      images.append(contentsOf: page.bytes(page.offset(index)..<page.valueOffset(index)))
    }
    for index in 0..<page.count {
      images.append(contentsOf: page.bytes(page.valueOffset(index)..<page.offset(index + 1)))
    }
    guard page.hasReferences else { return }
    let openCount = below[first...].count { $0.start == nil }
    Varint.append(openCount, to: &images)
    guard openCount > 0 else { return }
    for page in below[first...] {
      guard page.start == nil else {
        images.append(0)
        continue
      }
      Varint.append(page.shape.code, to: &images)
      Varint.append(Int(page.chunk), to: &images)
      Varint.append(page.root, to: &images)
      Varint.append(page.total << 1 | (page.hasPriorities ? 1 : 0), to: &images)
      Varint.append(page.shape.depth, to: &images)
    }
  }

  // MARK: Chunks

  /// Puts the pages below a page into chunks, but for a rest that is too small for a chunk of its own.
  private mutating func close(
    from first: Int, _ chunk: (UnsafeRawBufferPointer) throws(PageFailure) -> Void
  ) throws(PageFailure) {
    var members: [Int] = []
    let begin = below[first...].lazy.compactMap(\.start).first ?? images.count
    var start = begin
    for index in first..<below.count where below[index].start != nil {
      members.append(index)
      let end = below[(index + 1)...].lazy.compactMap(\.start).first ?? images.count
      guard end - start >= chunkByteLimit / 2 else { continue }
      try emit(images[start..<end], chunk)
      for (root, member) in members.enumerated() {
        below[member].start = nil
        below[member].chunk = chunkCount - 1
        below[member].root = root
      }
      members.removeAll(keepingCapacity: true)
      start = end
    }
    images.removeSubrange(begin..<start)
  }

  private mutating func emit(
    _ images: ArraySlice<UInt8>, _ chunk: (UnsafeRawBufferPointer) throws(PageFailure) -> Void
  ) throws(PageFailure) {
    let result = images.withUnsafeBytes { bytes in
      Result { () throws(PageFailure) in try chunk(bytes) }
    }
    try result.get()
    chunkCount += 1
  }
}

extension PageAccess {
  /// The offset of an entry's value in the tail.
  fileprivate func valueOffset(_ index: Int) -> Int {
    let key = key(index)
    return key.start + key.count - UnsafeRawPointer(tail)
  }

  fileprivate func bytes(_ range: Range<Int>) -> UnsafeRawBufferPointer {
    UnsafeRawBufferPointer(start: tail + range.lowerBound, count: range.count)
  }
}
