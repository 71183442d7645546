import DendroPlatform
import DendroStorage
import DendroTree

/// The part of `Admission` that belongs to the running transaction, of which there is at most one. Made on the
/// thread that runs the block.
struct RunningTransaction {
  /// The most writes that one transaction's block may make.
  static let heldWriteLimit = 16_384

  /// The thread that runs the block.
  private let thread = pthread_self()
  /// Nil until writes at related paths have to wait.
  private(set) var reservation: Reservation?
  /// The writes that the block has made, oldest first.
  private(set) var heldWrites: [HeldWrite] = []

  init() {}

  /// Whether the block runs on the calling thread.
  var isOnThisThread: Bool { pthread_equal(thread, pthread_self()) != 0 }

  /// Makes writes at related paths wait from now on. Only the first call counts: after a reservation has
  /// timed out there is no other.
  mutating func reserve(_ path: Path, timeout: Duration) {
    if reservation == nil { reservation = Reservation(path, timeout: timeout) }
  }

  /// Ends the reservation.
  func release() { reservation?.end() }

  /// Keeps a write of the block until the transaction has ended.
  ///
  /// - Returns: false where there are too many.
  mutating func hold(_ write: EncodedWrite, _ completion: Completion?) -> Bool {
    guard heldWrites.count < Self.heldWriteLimit else { return false }
    heldWrites.append(HeldWrite(write, completion))
    return true
  }

  /// Removes the writes that the block has made so far, since they are admitted.
  mutating func removeHeldWrites() { heldWrites = [] }
}
