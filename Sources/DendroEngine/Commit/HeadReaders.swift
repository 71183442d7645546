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
/// Why nothing stays retired: a reader that ends or gives up empties its slot before it looks whether something is
/// retired, and a writer says that something is before it looks at the slots once more. One of them sees the other.
final class HeadReaders: Sendable {
  /// One word alone in its cache line, so that who writes to it disturbs no one else.
  private struct Line: ~Copyable {
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

  /// The bits of the address that may be read; 0 during a change, and where the tree has to be asked for under the lock.
  @inline(__always)
  private var published: UnsafeMutablePointer<Line> { lines }
  /// Not 0 where the head keeps trees for their readers.
  @inline(__always)
  private var retiredAreThere: UnsafeMutablePointer<Line> { lines + 1 }
  /// The bits of the address that a reader has noted; 0 where the slot is free.
  @inline(__always)
  private func line(ofSlot slot: Int) -> UnsafeMutablePointer<Line> {
    lines + (Self.slotsStart &+ slot)
  }

  /// The slots that a thread tries.
  private static let probeCount = 4

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
  }

  deinit {
    lines.deinitialize(count: Self.slotsStart + slotCount)
    UnsafeMutableRawPointer(lines).deallocate()
  }

  // MARK: Reading

  /// Begins to read the head; nil where the admission lock has to be taken instead: during a change, where pages
  /// may have to be read from a file, where there is no branch, and where the slots that the thread tries are taken.
  ///
  /// Where it returns nil, the caller frees what is retired, if anything is: it may have been kept for this reader.
  @inline(__always)
  func begin() -> Reading? { claim().flatMap { confirm($0) } }

  /// Notes the published address in a free slot. Nothing may be read before `confirm`.
  @inline(__always)
  func claim() -> Reading? {
    let bits = published.pointee.word.load(ordering: .acquiring)
    if bits == 0 { return nil }
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

  /// Gives up where the address was withdrawn meanwhile.
  @inline(__always)
  func confirm(_ reading: Reading) -> Reading? {
    if published.pointee.word.load(ordering: .sequentiallyConsistent) == reading.branch.bits {
      return reading
    }
    line(ofSlot: reading.slot).pointee.word.store(0, ordering: .sequentiallyConsistent)
    return nil
  }

  /// Where a thread begins its search for a slot. The addresses of threads differ in the pages of their stacks.
  @inline(__always)
  private var firstSlot: Int {
    let hash = (BlockingExecutor.currentThreadID &>> 12) &* 0x9E37_79B9_7F4A_7C15
    return Int(hash &>> 48) & (slotCount &- 1)
  }

  /// Ends a reading. Nothing may be read through it any more.
  ///
  /// - Returns: whether the caller has to see to it that what was retired is freed, by `Head.takeUnread`.
  @inline(__always)
  func end(_ reading: Reading) -> Bool {
    line(ofSlot: reading.slot).pointee.word.store(0, ordering: .sequentiallyConsistent)
    return hasRetired && published.pointee.word.load(ordering: .relaxed) != reading.branch.bits
  }

  // MARK: Changing, under the admission lock

  /// - Returns: what was published.
  @inline(__always)
  func withdraw() -> BranchAddress? {
    let bits = published.pointee.word.exchange(0, ordering: .sequentiallyConsistent)
    return bits == 0 ? nil : BranchAddress(bits: bits)
  }

  @inline(__always)
  func publish(_ branch: BranchAddress?) {
    published.pointee.word.store(branch?.bits ?? 0, ordering: .releasing)
  }

  /// Whether the branch is in a slot. Its address is not published.
  @inline(__always)
  func areReading(_ branch: BranchAddress) -> Bool {
    var slot = 0
    while slot < slotCount {
      if line(ofSlot: slot).pointee.word.load(ordering: .sequentiallyConsistent) == branch.bits {
        return true
      }
      slot &+= 1
    }
    return false
  }

  /// Whether the head keeps trees for their readers.
  @inline(__always)
  var hasRetired: Bool {
    get { retiredAreThere.pointee.word.load(ordering: .sequentiallyConsistent) != 0 }
    set { retiredAreThere.pointee.word.store(newValue ? 1 : 0, ordering: .sequentiallyConsistent) }
  }
}
