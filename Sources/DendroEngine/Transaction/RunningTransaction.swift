import DendroStorage
import DendroTree

#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#elseif canImport(Darwin)
  import Darwin
#endif

/// What admission knows of the transaction that is running.
struct RunningTransaction {
  /// Writes that one transaction's block may make.
  static let heldWriteLimit = 16_384

  /// Where the block runs.
  private let thread = pthread_self()
  /// Nil until writes at related paths have to wait.
  private(set) var reservation: Reservation?
  /// What the block has written, oldest first.
  private var heldWrites: [(draft: Draft, completion: Completion?)] = []

  init() {}

  /// Whether the block runs on the calling thread.
  var isOnThisThread: Bool { pthread_equal(thread, pthread_self()) != 0 }

  /// Has writes at related paths wait from now on. Once only: a reservation that has run out is not
  /// followed by another.
  mutating func reserve(_ path: Path, timeout: Duration) {
    if reservation == nil { reservation = Reservation(path, timeout: timeout) }
  }

  /// Ends the reservation.
  func release() { reservation?.end() }

  /// Keeps a write of the block's for the end of the transaction.
  ///
  /// - Returns: false where there are too many.
  mutating func hold(_ draft: Draft, _ completion: Completion?) -> Bool {
    guard heldWrites.count < Self.heldWriteLimit else { return false }
    heldWrites.append((draft, completion))
    return true
  }

  /// What the block has written so far, which is admitted now.
  mutating func takeHeldWrites() -> [(draft: Draft, completion: Completion?)] {
    defer { heldWrites = [] }
    return heldWrites
  }
}
