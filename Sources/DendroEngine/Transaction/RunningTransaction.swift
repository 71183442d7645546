import DendroPlatform
import DendroTree

/// The part of `Admission` that belongs to the running transaction, of which there is at most one. Made on the
/// thread that runs the block.
struct RunningTransaction {
  /// The thread that runs the block.
  private let thread = pthread_self()
  /// Nil until writes at related paths have to wait.
  private(set) var reservation: Reservation?

  /// Whether the block runs on the calling thread.
  var isOnThisThread: Bool { pthread_equal(thread, pthread_self()) != 0 }

  /// Makes writes at related paths wait from now on. Only the first call counts: after a reservation has
  /// timed out there is no other.
  mutating func reserve(_ path: Path, timeout: Duration) {
    if reservation == nil { reservation = Reservation(path, timeout: timeout) }
  }

  /// Ends the reservation.
  func release() { reservation?.end() }
}
