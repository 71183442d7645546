/// What every page begins with.
struct PageHeader {
  enum Kind: UInt8 {
    /// Entries are children: a key and a packed leaf, or a mark and a reference.
    case leaf
    /// Entries are pages: the least key that may be in them, and a reference. The first one's key
    /// counts as less than all others.
    case inner
    /// One entry without a key, for what is too long for a page: a packed leaf, or a long priority
    /// and the reference to its branch.
    case box
  }

  var kind: Kind
  /// Bytes of one slot: 2 without references, 16 with.
  var slotStride: UInt8
  var count: UInt16
  /// Bytes of entries, from the start of the tail.
  var used: UInt32
  /// Bytes of the tail, a multiple of 8.
  var capacity: UInt32
  /// `total`, twice, and 1 more where `hasPriorities`: pages are many, and their headers small.
  private var totalAndPriorities: UInt32 = 0

  init(kind: Kind, slotStride: UInt8, capacity: UInt32) {
    self.kind = kind
    self.slotStride = slotStride
    self.capacity = capacity
    count = 0
    used = 0
  }

  /// Children in a leaf page, or in all leaf pages below an inner page; 0 in a box.
  @inline(__always)
  var total: UInt32 {
    get { totalAndPriorities >> 1 }
    set { totalAndPriorities = newValue << 1 | totalAndPriorities & 1 }
  }

  /// Whether any of these children has a priority; false in a box.
  @inline(__always)
  var hasPriorities: Bool {
    get { totalAndPriorities & 1 != 0 }
    set { totalAndPriorities = totalAndPriorities & ~1 | (newValue ? 1 : 0) }
  }
}

/// One allocation of a tree: the header, then the tail.
///
/// The tail holds entries from its start, in the order of keys and without gaps, and slots from its
/// end downwards, so that both grow into what is free between them:
///
///     | entry 0 | entry 1 | … | free | … | slot 1 | slot 0 |
///
/// An entry is the count of its key (LEB128), the key's ordered bytes, and the value up to the next
/// entry. A slot is the entry's offset (2 bytes), or a reference (8), the offset (2) and 6 unused
/// bytes where the page has references. Pages without references are plain bytes: copying one is
/// one `memcpy`.
///
/// The values that hold pages are `@unchecked Sendable` (`ManagedBuffer` cannot be). It is sound since
/// a page is changed only while exactly one reference to it exists (`PageAccess.writable` asks
/// `isKnownUniquelyReferenced`), and then by whoever owns that one; a page that two values share is
/// never written.
final class Page: ManagedBuffer<PageHeader, UInt64> {
  /// A page of plain bytes grows up to this and is then split: it takes 2 KiB of heap.
  static let plainByteCountMax = 2_048 - Page.overhead
  /// The same for a page with references, where a copy costs one retain an entry.
  static let referencingByteCountMax = 512 - Page.overhead
  /// Longer values go into boxes, so that at least two entries with the longest keys fit in a plain
  /// page.
  static let inlineValueByteCountMax = 216
  /// What an allocation takes beside its tail: the allocator's word, the object's two, the header.
  static let overhead = 8 + 16 + MemoryLayout<PageHeader>.size

  static func make(_ kind: PageHeader.Kind, hasReferences: Bool, capacity: Int) -> Page {
    // The allocator hands out multiples of 16; what it would waste is ours.
    let rounded = (capacity + overhead + 15) & ~15 - overhead
    let header = PageHeader(
      kind: kind, slotStride: hasReferences ? 16 : 2, capacity: UInt32(rounded))
    let buffer = Page.create(minimumCapacity: rounded / 8) { _ in header }
    return unsafeDowncast(buffer, to: Page.self)  // `create` makes an instance of the receiver.
  }

  /// Whoever uses it sees to it that the page is held meanwhile.
  var access: PageAccess {
    PageAccess(header: withUnsafeMutablePointerToHeader { $0 })
  }

  // Not by way of `header`, whose accesses are checked for overlaps at run time.
  @inline(__always)
  var kind: PageHeader.Kind { withExtendedLifetime(self) { access.kind } }
  @inline(__always)
  var total: Int { withExtendedLifetime(self) { access.total } }
  @inline(__always)
  var hasPriorities: Bool { withExtendedLifetime(self) { access.hasPriorities } }

  deinit {
    let access = access
    guard access.hasReferences else { return }
    for index in 0..<access.count {
      access.reference(index).deinitialize(count: 1)
    }
  }
}
