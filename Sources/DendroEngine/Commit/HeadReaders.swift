import CDendroProcessor
import DendroPlatform
import DendroTree
import Synchronization

/// The readers that look at the head without the admission lock, by hazard pointers (Michael, IEEE TPDS 2004).
///
/// A reader notes the address of the root page in a slot, and looks whether it is still published. A writer
/// withdraws the address before it changes anything, and then looks at the slots. If none has it, the pages are
/// changed in place. If one has, the writer waits for a moment, since most readers end within it and no other can
/// begin. If a reader is still there, the writer makes a second reference to the tree, so that all pages which are
/// changed are copied, and leaves that reference to the readers: the last of them frees it. A reader that comes during
/// a change looks again for a moment, and takes the admission lock if the change takes longer. Both moments are
/// counted in pauses of the processor, so that neither waits for long for a thread that has lost its own; and readers
/// share nothing that they write.
///
/// Why a reader sees no page that changes:
/// 1. It has written its slot before it has seen the address published, and the writer has withdrawn the address
///    before it looks at the slots, all four in one order (sequential consistency). So the writer sees the slot, or
///    the reader sees that the address was withdrawn and gives up.
/// 2. The writer changes a page only if it has seen, after it withdrew the address, each slot without it, or has made
///    the second reference before its first look at the counts of the pages. A slot in which it did not see the
///    address can still get it, but that reader sees the address withdrawn, or published again after the change.
/// 3. What a reader has read comes before the change: it has emptied its slot with a release, and the writer acquires
///    from that slot when it looks. That holds also if the next reader has noted its address there, since that is an
///    exchange, which continues the release. If the second reference is dropped during the change, then by a thread
///    that has looked at all slots in the same way, and the count of the page orders that before a change in place.
/// 4. What a change has written comes before the reads of the next reader: it acquires from the address that the
///    writer has published with a release.
/// 5. What a slot protects stays allocated, so that the address means no other page meanwhile: the head has a
///    reference to it until it changes, and the second one is there before that and until no slot has the address. A
///    reader that has noted an address of which the page is gone does not see it published, unless it is that of a
///    new root page, which it may read.
///
/// Why nothing stays retired: a reader that ends or gives up empties its slot before it looks whether something is
/// retired, and a writer says that something is before it looks at the slots once more, again in one order. One of
/// them sees the other. Of several readers of one tree, the last to look sees all their slots empty, since they look
/// under one lock (`retired`); and that nothing is retired is said under that lock alone.
final class HeadReaders: Sendable {
  /// One word alone in its cache line, so that who writes to it disturbs no one else.
  struct Line: ~Copyable {
    let word = Atomic<UInt>(0)
    private let padding = InlineArray<7, UInt>(repeating: 0)
  }

  /// A reader that has begun and not ended.
  struct Reading {
    fileprivate let slot: Int
    let branch: BranchAddress
  }

  /// A power of two, and at least `probeCount`.
  let slotCount: Int
  /// `published`, `retiredAreThere` and the slots, initialised from `init` to `deinit`. Not in the object itself, beside
  /// whose words its references are counted.
  private nonisolated(unsafe) let lines: UnsafeMutablePointer<Line>
  private static let slotsStart = 2
  /// Initialised from `init` to `deinit`, in a line of its own, and used under the admission lock alone.
  nonisolated(unsafe) let waiting: UnsafeMutablePointer<AdaptiveWait>
  /// Earlier trees that were read when they changed, and to which the readers have the last reference.
  ///
  /// Under a lock of their own, which is held for the time of a look at the slots: a reader that ends beside a writer
  /// at full speed would wait for the admission lock.
  let retired = BargingMutex<[Node]>([])

  /// The bits of the address that may be read, or one of the words of `Unpublished`.
  @inline(__always)
  var published: UnsafeMutablePointer<Line> { lines }
  /// Not 0 if trees are kept for their readers.
  @inline(__always)
  var retiredAreThere: UnsafeMutablePointer<Line> { lines + 1 }
  /// The bits of the address that a reader has noted; 0 if the slot is free.
  @inline(__always)
  func line(ofSlot slot: Int) -> UnsafeMutablePointer<Line> { lines + (Self.slotsStart &+ slot) }

  /// What is published instead of an address, of which neither is one.
  enum Unpublished {
    /// The tree has to be asked for under the lock: pages may have to be read from a file, or there is no branch.
    static let locked: UInt = 0
    /// The tree changes: there will be an address again in a moment.
    static let changing: UInt = 1

    @inline(__always)
    static func contains(_ bits: UInt) -> Bool { bits <= changing }
  }

  /// The slots that a thread tries.
  private static let probeCount = 4
  /// How often a reader looks again during a change: for one to ten microseconds, since a pause takes 40 to 140 cycles.
  private static let lookCount = 200

  /// - Parameter slotCount: how many may read at the same time without the lock, rounded up to a power of two; by
  ///   default twice the number of processors, and from 4 to 64. A writer looks at all of them.
  init(slotCount: Int = 2 * sysconf(Int32(_SC_NPROCESSORS_ONLN))) {
    let wanted = min(max(slotCount, Self.probeCount), 64)
    self.slotCount = 1 << (Int.bitWidth - (wanted - 1).leadingZeroBitCount)
    let count = Self.slotsStart + self.slotCount
    lines = UnsafeMutableRawPointer.allocate(
      byteCount: count * MemoryLayout<Line>.stride, alignment: 64
    ).bindMemory(to: Line.self, capacity: count)
    for index in 0..<count { (lines + index).initialize(to: Line()) }
    waiting = UnsafeMutableRawPointer.allocate(
      byteCount: MemoryLayout<Line>.stride, alignment: 64
    ).initializeMemory(as: AdaptiveWait.self, to: AdaptiveWait())
  }

  deinit {
    lines.deinitialize(count: Self.slotsStart + slotCount)
    UnsafeMutableRawPointer(lines).deallocate()
    waiting.deinitialize(count: 1)
    UnsafeMutableRawPointer(waiting).deallocate()
  }

  // MARK: Reading

  /// Begins to read the head; nil if the admission lock has to be taken instead: during a change that takes longer
  /// than a moment, if pages may have to be read from a file, if there is no branch, and if the slots that the
  /// thread tries are taken.
  ///
  /// - Parameter pause: between two looks whether the change is over.
  @inline(__always)
  func begin(pause: () -> Void = { dendro_pause() }) -> Reading? {
    if let reading = claim(), let confirmed = confirm(reading) { return confirmed }
    return beginAfterChange(pause)
  }

  /// `begin`, for a reader that has met a change.
  @inline(never)
  private func beginAfterChange(_ pause: () -> Void) -> Reading? {
    for _ in 0..<Self.lookCount {
      let bits = published.pointee.word.load(ordering: .relaxed)
      if bits == Unpublished.locked { return nil }
      if bits != Unpublished.changing {
        // If all slots are taken, they may be so for long.
        guard let reading = claim() else { return nil }
        if let confirmed = confirm(reading) { return confirmed }
      }
      pause()
    }
    return nil
  }

  /// Notes the published address in a free slot. Nothing may be read before `confirm`.
  @inline(__always)
  func claim() -> Reading? {
    let bits = published.pointee.word.load(ordering: .acquiring)
    if Unpublished.contains(bits) { return nil }
    var slot = firstSlot
    for _ in 0..<Self.probeCount {
      let word = line(ofSlot: slot)
      if word.pointee.word.load(ordering: .relaxed) == 0,
        word.pointee.word.compareExchange(
          expected: 0, desired: bits, ordering: .sequentiallyConsistent
        ).exchanged
      {
        return Reading(slot: slot, branch: BranchAddress(bits: bits))
      }
      slot = (slot &+ 1) & (slotCount &- 1)
    }
    return nil
  }

  /// Gives up if the address was withdrawn meanwhile.
  @inline(__always)
  func confirm(_ reading: Reading) -> Reading? {
    if published.pointee.word.load(ordering: .sequentiallyConsistent) == reading.branch.bits {
      return reading
    }
    line(ofSlot: reading.slot).pointee.word.store(0, ordering: .sequentiallyConsistent)
    // It may have been kept for this reader.
    if hasRetired { freeUnread() }
    return nil
  }

  /// Where a thread begins its search for a slot. The addresses of threads differ in the pages of their stacks.
  @inline(__always)
  private var firstSlot: Int {
    let hash = (BlockingExecutor.currentThreadID &>> 12) &* 0x9E37_79B9_7F4A_7C15
    return Int(hash &>> 48) & (slotCount &- 1)
  }

  /// Ends a reading, and frees the trees that were kept for it and for no other one. Nothing may be read through it
  /// any more.
  @inline(__always)
  func end(_ reading: Reading) {
    line(ofSlot: reading.slot).pointee.word.store(0, ordering: .sequentiallyConsistent)
    // What is published is not retired. A reader that sees that something is sees that its own tree was withdrawn.
    if hasRetired, published.pointee.word.load(ordering: .relaxed) != reading.branch.bits {
      freeUnread()
    }
  }
}
