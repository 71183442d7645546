/// Decodes the pages of a chunk. The bytes are not trusted: whatever they are, each page that is made is sound.
///
/// `PageImageWriter` describes them.
struct PageImageReader {
  private let bytes: UnsafeRawBufferPointer
  private let chunk: UInt32
  private let source: (any PageSource)?
  private let allowsBytes: Bool
  private var offset = 0
  /// The keys of the last leaf page, which were checked, and their count. Objects of one kind mostly have the same keys.
  private var checkedKeys = (bytes: 0..<0, count: 0)
  /// Pages to which no page refers yet, in their order.
  private(set) var unclaimed: [ChunkPages.Root] = []
  private(set) var leafCount = 0
  private(set) var open: [ChunkPages.OpenEntry] = []
  private(set) var referredChunks: [UInt32] = []
  /// The chunk to which the last entry with a page in another chunk refers: its entries follow one another, and those
  /// of a later chunk come after them.
  private var lastReferred: UInt32?
  /// The same where stubs are made.
  private var referred: PageChunk?

  init(
    _ bytes: UnsafeRawBufferPointer, chunk: UInt32, source: (any PageSource)?, allowsBytes: Bool
  ) {
    self.allowsBytes = allowsBytes
    self.bytes = bytes
    self.chunk = chunk
    self.source = source
  }

  private func failure(_ expected: String, _ found: String) -> PageImageError {
    PageImageError(expected: expected, found: found, offset: offset)
  }

  mutating func readAll() throws(PageImageError) {
    guard bytes.count > 0 else { throw failure("a page", "an empty chunk") }
    while offset < bytes.count { try readPage() }
  }

  private mutating func varint(_ what: String, limit: Int) throws(PageImageError) -> Int {
    guard let (value, byteCount) = Varint.read(bytes, at: offset), value <= limit else {
      throw failure("\(what) of at most \(limit)", "another number")
    }
    offset += byteCount
    return value
  }

  // MARK: A page

  private mutating func readPage() throws(PageImageError) {
    let head = bytes[offset]
    let hasReferences = head & PageImageWriter.referencesFlag != 0
    guard let kind = PageHeader.Kind(rawValue: head & ~PageImageWriter.referencesFlag),
      kind != .stub, kind != .inner || hasReferences
    else { throw failure("the kind of a page", "byte \(head)") }
    offset += 1
    let count =
      kind == .box ? 1 : try varint("a count of entries", limit: PageImageWriter.pageByteCountMax)
    let limit =
      kind == .box ? PageImageWriter.boxByteCountMax : PageImageWriter.pageByteCountMax
    let keyByteCount = try varint("a size of keys", limit: limit)
    let used = keyByteCount + (try varint("a size of values", limit: limit - keyByteCount))
    guard count > 0, used <= bytes.count - offset else {
      throw failure("\(count) entries of \(used) bytes", "\(bytes.count - offset) bytes")
    }
    let page = Page.make(
      kind, hasReferences: hasReferences, capacity: used + (hasReferences ? 16 : 2) * count)
    let access = page.unresolved
    if hasReferences {
      for index in 0..<count { access.slot(index).initializeMemory(as: Page?.self, to: nil) }
    }
    access.header.pointee.count = UInt16(count)
    access.header.pointee.used = UInt32(used)
    let keys = offset..<offset + keyByteCount
    var entries = PageImageEntries(
      UnsafeRawBufferPointer(rebasing: bytes[offset..<offset + used]), keyByteCount: keyByteCount,
      kind: kind, hasReferences: hasReferences, allowsBytes: allowsBytes,
      areKeysChecked: kind == .leaf && areChecked(keys, count: count))
    var end = 0
    for index in 0..<count {
      if let expected = entries.next() {
        throw PageImageError(
          expected: expected, found: "other bytes", offset: offset + entries.offset)
      }
      access.setOffset(index, end)
      end += entries.copy(to: access.tail + end)
    }
    guard entries.isAtEnd else {
      throw failure("\(count) entries of \(used) bytes", "entries of \(end) bytes")
    }
    if kind == .leaf { checkedKeys = (keys, count) }
    offset += used
    if kind != .inner { leafCount += count - entries.referenceCount }
    if kind == .leaf {
      access.header.pointee.total = UInt32(count)
      access.header.pointee.hasPriorities = entries.hasPriorities
    }
    try connect(page, referenceCount: kind == .inner ? count : entries.referenceCount)
  }

  /// Whether these are the keys of the last leaf page.
  private func areChecked(_ keys: Range<Int>, count: Int) -> Bool {
    guard count == checkedKeys.count, keys.count == checkedKeys.bytes.count,
      let start = bytes.baseAddress
    else { return false }
    return compareBytes(
      start + keys.lowerBound, keys.count, start + checkedKeys.bytes.lowerBound, keys.count) == 0
  }

  // MARK: References

  /// Gives the entries of a page their references, and counts what is below it.
  private mutating func connect(_ page: Page, referenceCount: Int) throws(PageImageError) {
    let access = page.unresolved
    var shape = PageShape(access.kind, depth: access.kind == .leaf ? 1 : 0)
    guard access.hasReferences else { return unclaimed.append(.init(page: page, shape: shape)) }
    let openCount = try varint("a count of pages in other chunks", limit: referenceCount)
    let first = unclaimed.count - (referenceCount - openCount)
    guard first >= 0 else { throw failure("\(referenceCount) pages below", "fewer") }
    var next = first
    var total = access.total
    for index in 0..<access.count where access.kind == .inner || access.refers(index) {
      let child: (total: Int, hasPriorities: Bool, shape: PageShape)
      if openCount == 0 {
        child = try takeUnclaimed(next, below: access, index)
        next += 1
      } else {
        let code = try varint("the shape of a page in another chunk", limit: 2 + PageShape.levelMax)
        if code == 0 {
          guard next < unclaimed.count else {
            throw failure("a page of another chunk", "one of this")
          }
          child = try takeUnclaimed(next, below: access, index)
          next += 1
        } else {
          child = try readOpen(code, below: access, index)
        }
      }
      shape.depth = max(shape.depth, child.shape.depth + (access.kind == .leaf ? 1 : 0))
      if access.kind == .inner {
        if index == 0 { shape.level = child.shape.level + 1 }
        guard child.shape.level == shape.level - 1 else {
          throw failure("pages of one level below an inner page", "others")
        }
        total += child.total
        if child.hasPriorities { access.header.pointee.hasPriorities = true }
      }
    }
    guard next == unclaimed.count else {
      throw failure("\(openCount) pages of other chunks", "more")
    }
    guard shape.depth <= Limits.depth, shape.level <= PageShape.levelMax,
      total <= PageImageWriter.totalMax
    else {
      throw failure(
        "at most \(PageShape.levelMax) levels of pages, \(Limits.depth) keys on a path and "
          + "\(PageImageWriter.totalMax) children",
        "\(shape.level), \(shape.depth) and \(total)")
    }
    access.header.pointee.total = UInt32(total)
    unclaimed.removeLast(unclaimed.count - first)
    unclaimed.append(.init(page: page, shape: shape))
  }

  private mutating func takeUnclaimed(
    _ index: Int, below page: PageAccess, _ entry: Int
  ) throws(PageImageError) -> (total: Int, hasPriorities: Bool, shape: PageShape) {
    let child = unclaimed[index]
    let access = child.page.unresolved
    try check(access.kind, below: page, entry)
    if access.kind == .box, access.value(0).count <= Page.inlineValueByteCountMax {
      throw failure("a long value in a box", "\(access.value(0).count) bytes")
    }
    page.reference(entry).pointee = child.page
    if access.kind == .box, access.hasPriority(0), page.kind == .leaf {
      page.header.pointee.hasPriorities = true
    }
    try checkBounds(access, below: page, entry)
    return (access.total, access.hasPriorities, child.shape)
  }

  private mutating func readOpen(
    _ code: Int, below page: PageAccess, _ entry: Int
  ) throws(PageImageError) -> (total: Int, hasPriorities: Bool, shape: PageShape) {
    let number = try varint("the number of a chunk", limit: Int(UInt32.max))
    guard number < chunk, number >= lastReferred ?? 0 else {
      throw failure("a chunk from \(lastReferred ?? 0) to before \(chunk)", "chunk \(number)")
    }
    let root = try varint("a page of a chunk", limit: Int(Int32.max))
    let total = try varint("a count of children", limit: 2 * PageImageWriter.totalMax + 1)
    let depth = try varint("a depth", limit: Limits.depth)
    guard let shape = PageShape(code: code, depth: depth) else {
      throw failure("the shape of a page", "\(code)")
    }
    try check(shape.kind, below: page, entry)
    let reference = PageReference(
      shape: shape, total: total >> 1, hasPriorities: total & 1 != 0, chunk: UInt32(number),
      root: root)
    if shape.kind == .box, reference.hasPriorities, page.kind == .leaf {
      page.header.pointee.hasPriorities = true
    }
    let slot = page.reference(entry)
    if let source {
      if reference.chunk != lastReferred {
        referred = PageChunk(number: reference.chunk, source: source)
        referredChunks.append(reference.chunk)
      }
      guard let referred else { preconditionFailure("was just made") }
      referred.add(reference)
      slot.pointee = PageStub.make(reference, in: referred)
    } else {
      open.append(ChunkPages.OpenEntry(slot: slot, reference: reference))
    }
    lastReferred = reference.chunk
    return (reference.total, reference.hasPriorities, shape)
  }

  /// Checks that the keys of a leaf page are between the bounds that the inner page above gives it.
  private func checkBounds(
    _ child: PageAccess, below page: PageAccess, _ entry: Int
  ) throws(PageImageError) {
    guard page.kind == .inner, child.kind == .leaf else { return }
    func precedes(
      _ a: (start: UnsafeRawPointer, count: Int), _ b: (start: UnsafeRawPointer, count: Int)
    ) -> Bool { compareBytes(a.start, a.count, b.start, b.count) < 0 }
    if entry > 0, precedes(child.key(0), page.key(entry)) {
      throw failure("keys behind the bound of their page", "others")
    }
    if entry + 1 < page.count, !precedes(child.key(child.count - 1), page.key(entry + 1)) {
      throw failure("keys before the bound of the next page", "others")
    }
  }

  /// Checks that a page of this kind may be below an entry.
  private func check(
    _ kind: PageHeader.Kind, below page: PageAccess, _ entry: Int
  ) throws(PageImageError) {
    let isAllowed =
      switch page.kind {
      case .inner, .box: kind != .box
      case .leaf: kind != .box || page.value(entry).count == 1
      case .stub: false
      }
    guard isAllowed else { throw failure("a page of another kind below", "\(kind)") }
  }
}

extension PageAccess {
  /// Whether an entry of a leaf page or a box has the tag of a reference.
  func refers(_ index: Int) -> Bool { Pages.tag(valueStart(index)) == Pages.referenceTag }
}
