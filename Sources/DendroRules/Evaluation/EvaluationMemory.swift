import Synchronization

/// Where the stacks of one evaluation begin, so that most verdicts allocate nothing.
struct EvaluationMemory<View: DataView>: ~Copyable {
  let levels: UnsafeMutableBufferPointer<Level>
  let places: UnsafeMutableBufferPointer<Place<View>>
  let values: UnsafeMutableBufferPointer<Value>
  let objects: UnsafeMutableBufferPointer<JSONValue>
  let texts: UnsafeMutableRawBufferPointer
  let observations: UnsafeMutableBufferPointer<UInt8>

  /// - Parameter block: of `EvaluationBlocks`. It outlives the memory, and nothing else uses it meanwhile.
  fileprivate init(_ block: UnsafeMutableRawPointer) {
    var free = UnsafeMutableRawBufferPointer(start: block, count: EvaluationBlocks.byteCount)
    places = Self.take(4096, from: &free)
    levels = Self.take(256, from: &free)
    values = Self.take(384, from: &free)
    objects = Self.take(128, from: &free)
    texts = UnsafeMutableRawBufferPointer(Self.take(512, from: &free) as Bytes)
    observations = Self.take(1024, from: &free)
  }

  private typealias Bytes = UnsafeMutableBufferPointer<UInt8>

  /// Takes memory for as many elements as so many bytes are.
  @inline(__always)
  private static func take<Element>(
    _ byteCount: Int, from free: inout UnsafeMutableRawBufferPointer
  ) -> UnsafeMutableBufferPointer<Element> {
    let taken = UnsafeMutableRawBufferPointer(rebasing: free[..<byteCount])
    free = UnsafeMutableRawBufferPointer(rebasing: free[byteCount...])
    // Each part begins at a multiple of 128 bytes.
    return UnsafeMutableBufferPointer(
      start: taken.baseAddress?.bindMemory(
        to: Element.self, capacity: byteCount / MemoryLayout<Element>.stride),
      count: byteCount / MemoryLayout<Element>.stride)
  }
}

/// Blocks of memory for evaluations. One is kept from one evaluation to the next; of those that run at the same time, the
/// others allocate theirs.
///
/// Unchecked: who takes a block by the exchange has it alone.
final class EvaluationBlocks: @unchecked Sendable {
  static let byteCount = 6400
  private let kept = Atomic<UnsafeMutableRawPointer?>(nil)

  deinit { kept.load(ordering: .acquiring)?.deallocate() }

  /// Calls `body` with memory that is valid during the call.
  @inline(__always)
  func with<View: DataView, R>(_ body: (borrowing EvaluationMemory<View>) -> R) -> R {
    let block = kept.exchange(nil, ordering: .acquiring) ?? Self.allocate()
    defer { kept.exchange(block, ordering: .acquiringAndReleasing)?.deallocate() }
    return body(EvaluationMemory(block))
  }

  @inline(never)
  private static func allocate() -> UnsafeMutableRawPointer {
    .allocate(byteCount: byteCount, alignment: 128)
  }
}
