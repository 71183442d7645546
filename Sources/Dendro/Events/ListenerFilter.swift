import DendroTree
import Synchronization

/// How many listeners there are, and which first keys their paths have: most commits that concern no listener
/// are recognized by it without a lock.
///
/// A listener is added under the admission lock and the hub's, so that a commit after it sees it. It is removed
/// under the hub's alone: a commit that misses that looks for listeners, and finds none.
struct ListenerFilter: ~Copyable {
  private let number = Atomic<Int>(0)
  /// One bit for every 64th first key. Removed keys stay until there is no listener.
  private let firstKeys = Atomic<UInt64>(0)

  /// The number of sync points and subscriptions.
  var count: Int { number.load(ordering: .relaxed) }

  func add(_ path: Path) {
    number.wrappingAdd(1, ordering: .relaxed)
    let bits = path.storedBytes.withUnsafeBytes { Self.bits(of: $0) }
    firstKeys.bitwiseOr(bits, ordering: .relaxed)
  }

  func remove() {
    guard number.wrappingSubtract(1, ordering: .relaxed).newValue == 0 else { return }
    firstKeys.store(0, ordering: .relaxed)
  }

  func removeAll() {
    number.store(0, ordering: .relaxed)
    firstKeys.store(0, ordering: .relaxed)
  }

  /// Whether there may be a listener at, above or below the path. If not, there is none.
  ///
  /// - Complexity: O(1).
  @inline(__always)
  func mayConcern(_ path: Path) -> Bool { path.storedBytes.withUnsafeBytes { mayConcern($0) } }

  /// `mayConcern` with the stored bytes of a path.
  @inline(__always)
  func mayConcern(_ storedPath: UnsafeRawBufferPointer) -> Bool {
    let keys = firstKeys.load(ordering: .relaxed)
    return keys != 0 && keys & Self.bits(of: storedPath) != 0
  }

  /// The bit of the first key; all of them for the root, whose listeners every path concerns.
  @inline(__always)
  private static func bits(of bytes: UnsafeRawBufferPointer) -> UInt64 {
    if bytes.isEmpty { return .max }
    let length = bytes[0]
    var hash = UInt64(length)
    var index = 1
    // By index: without optimization an iterator would allocate.
    while index < min(bytes.count, 1 + min(Int(length), 8)) {
      hash = (hash ^ UInt64(bytes[index])) &* 0x0000_0100_0000_01B3
      index += 1
    }
    return 1 << ((hash &* 0x9E37_79B9_7F4A_7C15) >> 58)
  }
}
