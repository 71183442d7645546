/// The header of a page.
struct PageHeader {
  enum Kind: UInt8 {
    /// Each entry is a child: its key, and a packed leaf or a tag that stands for the entry's reference.
    case leaf
    /// Each entry is a page: a lower bound of the keys in it, and a reference. The bound of the first entry
    /// counts as less than all keys.
    case inner
    /// One entry without a key, whose value is too long for a page: a packed leaf, or a long priority and
    /// the reference to its branch.
    case box
    /// A page that may still be in a file; see `PageStub`.
    case stub
  }

  var kind: Kind
  /// The size of one slot in bytes: 2 without references, 16 with them.
  var slotStride: UInt8
  /// The number of entries.
  var count: UInt16
  /// The size of all entries in bytes; they begin at the start of the tail.
  var used: UInt32
  /// The size of the tail in bytes, a multiple of 8.
  var capacity: UInt32
  /// `2 · total + (hasPriorities ? 1 : 0)`. Sharing a field keeps the header small, since there are many
  /// pages.
  private var totalAndPriorities: UInt32 = 0

  init(kind: Kind, slotStride: UInt8, capacity: UInt32) {
    self.kind = kind
    self.slotStride = slotStride
    self.capacity = capacity
    count = 0
    used = 0
  }

  /// The number of children in a leaf page, or in all leaf pages below an inner page; 0 in a box.
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

/// A page of a tree: one allocation with the header and the tail.
///
/// Entries lie at the start of the tail, in the order of keys and without gaps. Slots lie at its end and
/// grow downwards. The free bytes are in between:
///
///     | entry 0 | entry 1 | … | free | … | slot 1 | slot 0 |
///
/// An entry is the length of its key (LEB128), the key's ordered bytes, and the value, which ends where
/// the next entry begins. In a page without references a slot is the offset of its entry (2 bytes). In a
/// page with references it is a reference (8 bytes), the offset (2) and 6 unused bytes. A page without
/// references is plain bytes: one `memcpy` copies it.
///
/// The values that hold pages are `@unchecked Sendable`, since `ManagedBuffer` is not `Sendable`. This is
/// sound because a page is changed only while exactly one reference to it exists
/// (`PageAccess.writable` checks `isKnownUniquelyReferenced`), and only by the owner of that reference.
/// A page that two values share is never written.
final class Page: ManagedBuffer<PageHeader, UInt64> {
  /// A page without references is split when it is larger than this. It takes at most 2 KiB of heap
  /// then.
  static let plainByteCountMax = 2_048 - Page.overhead
  /// The same for a page with references, which is smaller since a copy retains each reference.
  static let referencingByteCountMax = 512 - Page.overhead
  /// An inner page with fewer entries is not split, however long its keys are.
  static let innerSplitCountMin = 8
  /// Entries that each half of an inner page has at least, when it is split.
  static let innerHalfCountMin = 2
  /// A longer value is put into a box, so that at least two entries with the longest keys fit into a page
  /// without references.
  static let inlineValueByteCountMax = 216
  /// The bytes of an allocation beside its tail: one word of the allocator, two of the object, and the
  /// header.
  static let overhead = 8 + 16 + MemoryLayout<PageHeader>.size

  static func make(_ kind: PageHeader.Kind, hasReferences: Bool, capacity: Int) -> Page {
    // The allocator rounds up to multiples of 16; the page uses the bytes that rounding adds.
    let rounded = (capacity + overhead + 15) & ~15 - overhead
    let header = PageHeader(
      kind: kind, slotStride: hasReferences ? 16 : 2, capacity: UInt32(rounded))
    let buffer = Page.create(minimumCapacity: rounded / 8) { _ in header }
    return unsafeDowncast(buffer, to: Page.self)  // `create` returns an instance of its receiver.
  }

  /// Accesses the bytes of the page; of a stub, those of the page that it stands for. The caller must keep the
  /// page alive while it uses the access.
  @inline(__always)
  var access: PageAccess { unresolved.resolved }

  /// Accesses the bytes of the page or the stub.
  @inline(__always)
  var unresolved: PageAccess { PageAccess(header: withUnsafeMutablePointerToHeader { $0 }) }

  // These do not use `header`, since Swift checks accesses to it for exclusivity at run time. None of them
  // reads a stub's page.
  @inline(__always)
  var kind: PageHeader.Kind { withExtendedLifetime(self) { unresolved.resolvedKind } }
  @inline(__always)
  var total: Int { withExtendedLifetime(self) { unresolved.total } }
  @inline(__always)
  var hasPriorities: Bool { withExtendedLifetime(self) { unresolved.hasPriorities } }

  deinit {
    let access = unresolved
    if access.kind == .stub { return PageStub(access.header).release() }
    guard access.hasReferences else { return }
    access.prefetchReferencedPages()
    for index in 0..<access.count {
      access.reference(index).deinitialize(count: 1)
    }
  }
}
