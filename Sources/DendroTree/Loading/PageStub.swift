import Synchronization

/// Accesses a stub: a page that stands for one which may still be in a file.
///
/// A stub keeps its page once that is read. Reads go through the stub to the page, on any thread; the first
/// write replaces the stub in the slot that refers to it.
///
/// Its tail holds the address of its page (0 until it is read), the address of its chunk, and the fields of
/// its `PageReference`. The header shows the total and the priorities of the page, so that the pages above can
/// count without reading it, and a size with which no page is merged.
///
/// Why it is sound, beside what `PageAccess` says: both addresses own a reference, which `release` gives up
/// when the stub is freed. The address of the page is stored once, under the lock of the chunk, and read
/// atomically; it is taken back only by the thread that has the only reference to the stub.
struct PageStub {
  let header: UnsafeMutablePointer<PageHeader>

  private static let chunkOffset = 8
  private static let rootOffset = 16
  private static let kindOffset = 20
  private static let levelOffset = 21
  private static let depthOffset = 22
  private static let byteCount = 24
  /// What a stub takes without the page that it stands for, rounded as the allocator rounds.
  static var memoryByteCount: Int { (byteCount + Page.overhead + 15) & ~15 }
  /// More than any page has, so that a stub is never nearly empty.
  private static let usedByteCount: UInt32 = 1 << 20

  init(_ header: UnsafeMutablePointer<PageHeader>) { self.header = header }

  static func make(_ reference: PageReference, in chunk: PageChunk) -> Page {
    let page = Page.make(.stub, hasReferences: false, capacity: byteCount)
    let stub = PageStub(page.unresolved.header)
    stub.header.pointee.count = 1
    stub.header.pointee.used = usedByteCount
    stub.header.pointee.total = UInt32(reference.total)
    stub.header.pointee.hasPriorities = reference.hasPriorities
    stub.loaded.initialize(to: Atomic(0))
    let tail = stub.tail
    tail.storeBytes(
      of: UInt(bitPattern: Unmanaged.passRetained(chunk).toOpaque()), toByteOffset: chunkOffset,
      as: UInt.self)
    tail.storeBytes(of: UInt32(reference.root), toByteOffset: rootOffset, as: UInt32.self)
    tail.storeBytes(of: reference.shape.kind.rawValue, toByteOffset: kindOffset, as: UInt8.self)
    tail.storeBytes(of: UInt8(reference.shape.level), toByteOffset: levelOffset, as: UInt8.self)
    tail.storeBytes(of: UInt8(reference.shape.depth), toByteOffset: depthOffset, as: UInt8.self)
    return page
  }

  /// Gives up the references that the stub has. Call once, when it is freed.
  func release() {
    takeLoaded()?.release()
    Unmanaged<PageChunk>.fromOpaque(chunkAddress).release()
  }

  // MARK: Fields

  private var tail: UnsafeMutableRawPointer { UnsafeMutableRawPointer(header + 1) }

  private var loaded: UnsafeMutablePointer<Atomic<UInt>> {
    tail.assumingMemoryBound(to: Atomic<UInt>.self)
  }

  private var chunkAddress: UnsafeRawPointer {
    tail.load(fromByteOffset: Self.chunkOffset, as: UnsafeRawPointer.self)
  }

  var chunk: PageChunk { Unmanaged<PageChunk>.fromOpaque(chunkAddress).takeUnretainedValue() }

  /// The kind of the page that it stands for.
  var kind: PageHeader.Kind {
    guard
      let kind = PageHeader.Kind(
        rawValue: tail.load(fromByteOffset: Self.kindOffset, as: UInt8.self))
    else { preconditionFailure("a stub knows the kind of its page") }
    return kind
  }

  var reference: PageReference {
    let shape = PageShape(
      kind, level: Int(tail.load(fromByteOffset: Self.levelOffset, as: UInt8.self)),
      depth: Int(tail.load(fromByteOffset: Self.depthOffset, as: UInt8.self)))
    return PageReference(
      shape: shape, total: Int(header.pointee.total),
      hasPriorities: header.pointee.hasPriorities, chunk: chunk.number,
      root: Int(tail.load(fromByteOffset: Self.rootOffset, as: UInt32.self)))
  }

  // MARK: The page

  var isLoaded: Bool { loaded.pointee.load(ordering: .acquiring) != 0 }

  private var page: Unmanaged<Page>? {
    UnsafeRawPointer(bitPattern: loaded.pointee.load(ordering: .acquiring))
      .map { Unmanaged<Page>.fromOpaque($0) }
  }

  /// Accesses the page, unless it was not read yet.
  var loadedPage: PageAccess? { page?._withUnsafeGuaranteedRef { $0.unresolved } }

  private func takeLoaded() -> Unmanaged<Page>? {
    UnsafeRawPointer(bitPattern: loaded.pointee.exchange(0, ordering: .acquiringAndReleasing))
      .map { Unmanaged<Page>.fromOpaque($0) }
  }

  /// Keeps the page. Only the chunk calls this, under its lock.
  func keep(_ page: Page) {
    loaded.pointee.store(
      UInt(bitPattern: Unmanaged.passRetained(page).toOpaque()), ordering: .releasing)
  }

  /// Accesses the page, after reading it if it was not read before.
  func load() throws(PageFailure) -> PageAccess {
    if page == nil { try chunk.load(self) }
    guard let page else { preconditionFailure("a chunk that was loaded gives the stub its page") }
    return page._withUnsafeGuaranteedRef { $0.unresolved }
  }

  /// Accesses the page, or an empty one if it cannot be read. Then the source of the pages gets the error.
  ///
  /// Not inlined: nearly no page is a stub.
  @inline(never)
  func resolved() -> UnsafeMutablePointer<PageHeader> {
    if let page { return page._withUnsafeGuaranteedRef { $0.unresolved.header } }
    return readPage().unresolved.header
  }

  /// The page that `resolved` accesses.
  var resolvedPage: Page { page?.takeUnretainedValue() ?? readPage() }

  private func readPage() -> Page {
    do throws(PageFailure) {
      _ = try load()
    } catch {
      chunk.source.didFail(error)
    }
    return page?.takeUnretainedValue() ?? (kind == .box ? Page.lostBox : Page.lost)
  }

  /// Replaces the stub in a slot, which no other thread reads, by its page.
  ///
  /// - Precondition: the page can be read; the caller has seen to that before it began to write.
  static func replace(_ slot: UnsafeMutablePointer<Page?>) {
    let stub = PageStub(PageAccess(unresolved: slot).header)
    do throws(PageFailure) {
      _ = try stub.load()
    } catch {
      preconditionFailure("a page was written to before it was read: \(error.cause)")
    }
    if isKnownUniquelyReferenced(&slot.pointee), let page = stub.takeLoaded() {
      slot.pointee = page.takeRetainedValue()
    } else {
      slot.pointee = stub.page?.takeUnretainedValue()
    }
  }
}

extension Page {
  /// The page itself, or the one that a stub stands for; an empty one if that cannot be read, as by
  /// `PageStub.resolved`.
  @inline(__always)
  var resolved: Page { unresolved.kind == .stub ? PageStub(unresolved.header).resolvedPage : self }

  /// Stands for a page that cannot be read. No slot refers to it, so it is never changed.
  nonisolated(unsafe) static let lost = Page.make(.leaf, hasReferences: false, capacity: 8)

  /// Stands for a box that cannot be read: an empty string.
  nonisolated(unsafe) static let lostBox: Page = {
    let box = Page.make(.box, hasReferences: false, capacity: 16)
    withUnsafeBytes(of: UInt8(0)) { none in
      box.unresolved.insert(
        at: 0, none.baseAddress.unsafelyUnwrapped, 0, valueCount: 1, nil
      ).storeBytes(of: PackedScalar.stringTag, as: UInt8.self)
    }
    return box
  }()
}
