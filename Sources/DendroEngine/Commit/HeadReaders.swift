import DendroPlatform
import DendroTree
import Synchronization

/// The readers that look at the head without the admission lock, by hazard pointers (Michael, IEEE TPDS 2004).
///
/// A reader notes the address of the root page in a slot, and looks whether it is still published. A writer
/// withdraws the address before it changes anything, and then looks at the slots: where none has it, the pages
/// are changed in place; where one has, the writer keeps a reference to the tree until that reader has ended
/// (`Head`), so that all pages which are changed are copied. Neither waits for the other, and readers share
/// nothing that they write.
///
/// Why a reader sees no page that changes: it has written its slot before it has seen the address published, and
/// the writer has withdrawn the address before it looks at the slots, all four in one order (sequential
/// consistency). So the writer sees the slot, or the reader sees that the address was withdrawn and gives up. What
/// a slot protects stays allocated, so the address means no other page meanwhile.
///
/// Why nothing stays retired: a reader that ends empties its slot before it looks whether something is retired, and
/// a writer says that something is before it looks at the slots once more.
final class HeadReaders: Sendable {
  /// Alone in its cache line, since each reader writes to its own.
  private struct Slot: ~Copyable {
    /// The bits of a `BranchAddress`; 0 where the slot is free.
    let address = Atomic<UInt>(0)
    private let padding = InlineArray<7, UInt>(repeating: 0)
  }

  /// A reader that has begun and not ended.
  struct Reading {
    fileprivate let slot: Int
    let branch: BranchAddress
  }

  /// The bits of the address that may be read; 0 during a change, and where the tree has to be asked for under the lock.
  private let published = Atomic<UInt>(0)
  private let retiredAreThere = Atomic<Bool>(false)
  /// A power of two.
  let slotCount: Int
  /// Initialised from `init` to `deinit`.
  private nonisolated(unsafe) let slots: UnsafeMutablePointer<Slot>

  /// - Parameter slotCount: how many may read at the same time without the lock, rounded up to a power of two; by
  ///   default twice the number of processors, and from 4 to 64. A writer looks at all of them.
  init(slotCount: Int = 2 * sysconf(Int32(_SC_NPROCESSORS_ONLN))) {
    let wanted = min(max(slotCount, 4), 64)
    let count = 1 << (Int.bitWidth - (wanted - 1).leadingZeroBitCount)
    self.slotCount = count
    slots = UnsafeMutableRawPointer.allocate(
      byteCount: count * MemoryLayout<Slot>.stride, alignment: 64
    ).bindMemory(to: Slot.self, capacity: count)
    for index in 0..<count { (slots + index).initialize(to: Slot()) }
  }

  deinit {
    slots.deinitialize(count: slotCount)
    UnsafeMutableRawPointer(slots).deallocate()
  }

  // MARK: Reading

  /// Begins to read the head; nil where the admission lock has to be taken instead: during a change, where pages
  /// may have to be read from a file, and where two slots that the thread tries are taken.
  @inline(__always)
  func begin() -> Reading? {
    let bits = published.load(ordering: .acquiring)
    if bits == 0 { return nil }
    var slot = firstSlot
    for _ in 0..<2 {
      let isMine = slots[slot].address.compareExchange(
        expected: 0, desired: bits, ordering: .sequentiallyConsistent
      ).exchanged
      if isMine {
        if published.load(ordering: .sequentiallyConsistent) == bits {
          return Reading(slot: slot, branch: BranchAddress(bits: bits))
        }
        slots[slot].address.store(0, ordering: .sequentiallyConsistent)
        return nil
      }
      slot = (slot &+ 1) & (slotCount &- 1)
    }
    return nil
  }

  /// Threads begin their search at different slots, mostly.
  @inline(__always)
  private var firstSlot: Int {
    let thread = UInt(pthread_self())
    return Int((thread &>> 12) &* 0x9E37_79B9_7F4A_7C15 &>> 48) & (slotCount &- 1)
  }

  /// Ends a reading. Nothing may be read through it any more.
  ///
  /// - Returns: whether the caller has to see to it that what was retired is freed, by `Head.takeUnread`.
  @inline(__always)
  func end(_ reading: Reading) -> Bool {
    slots[reading.slot].address.store(0, ordering: .sequentiallyConsistent)
    return retiredAreThere.load(ordering: .sequentiallyConsistent)
      && published.load(ordering: .relaxed) != reading.branch.bits
  }

  // MARK: Changing, under the admission lock

  @inline(__always)
  func withdraw() { published.store(0, ordering: .sequentiallyConsistent) }

  @inline(__always)
  func publish(_ branch: BranchAddress?) {
    published.store(branch?.bits ?? 0, ordering: .releasing)
  }

  /// Whether anybody reads the branch. The address is not published.
  @inline(__always)
  func areReading(_ branch: BranchAddress) -> Bool {
    var slot = 0
    while slot < slotCount {
      if slots[slot].address.load(ordering: .sequentiallyConsistent) == branch.bits { return true }
      slot &+= 1
    }
    return false
  }

  /// Whether the head keeps trees for their readers.
  var hasRetired: Bool {
    get { retiredAreThere.load(ordering: .sequentiallyConsistent) }
    set { retiredAreThere.store(newValue, ordering: .sequentiallyConsistent) }
  }
}
