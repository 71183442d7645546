import DendroPlatform
import DendroTree

/// The part of `Admission` that belongs to one running transaction. Made on the thread that runs the block.
struct RunningTransaction {
  /// The thread that runs the block.
  private let thread = pthread_self()
  /// What the block writes.
  let writes: BlockWrites
  /// Nil until writes at related paths have to wait.
  fileprivate(set) var reservation: Reservation?
  /// Whether it was decided. What the block has written may not be submitted yet.
  fileprivate(set) var hasEnded = false

  fileprivate init(_ writes: BlockWrites) { self.writes = writes }

  /// Whether the block runs on the calling thread.
  fileprivate var isOnThisThread: Bool { !hasEnded && pthread_equal(thread, pthread_self()) != 0 }
}

/// The transactions that run at the moment, each on a thread of its own. There are few.
struct RunningTransactions {
  private var all: [RunningTransaction] = []

  var isEmpty: Bool { all.isEmpty }

  /// Whether a write of the calling thread need not be compared with them: none runs on this thread, and none has reserved
  /// its location.
  @inline(__always)
  var letAllPass: Bool { all.isEmpty || !isAnyConcerned }

  private var isAnyConcerned: Bool { all.contains { $0.reservation != nil || $0.isOnThisThread } }

  /// What their blocks have written, and what was not submitted yet.
  var writes: [BlockWrites] { all.map(\.writes) }

  /// Notes a transaction whose block will run on the calling thread.
  mutating func begin(_ writes: BlockWrites) {
    precondition(ofThisThread == nil, "transactions run one at a time on a thread")
    all.append(RunningTransaction(writes))
  }

  /// The one whose block runs on the calling thread.
  var ofThisThread: RunningTransaction? { all.first { $0.isOnThisThread } }

  /// The reservation of one for which a write waits; nil if there is none.
  func reservation(concerning write: WriteView) -> Reservation? {
    for transaction in all {
      if let reservation = transaction.reservation, !reservation.isOver, reservation.concerns(write)
      {
        return reservation
      }
    }
    return nil
  }

  /// Makes writes at related paths wait from now on. Only the first call counts: after a reservation has
  /// timed out there is no other.
  mutating func reserve(_ path: Path, timeout: Duration, for writes: BlockWrites) {
    guard let index = index(of: writes), all[index].reservation == nil else { return }
    all[index].reservation = Reservation(path, timeout: timeout)
  }

  /// Ends a transaction. If its block has written, `remove` has to follow once that is submitted.
  mutating func end(_ writes: BlockWrites) {
    guard let index = index(of: writes) else { return }
    all[index].reservation?.end()
    all[index].hasEnded = true
    if writes.isEmpty { all.remove(at: index) }
  }

  mutating func remove(_ writes: BlockWrites) { all.removeAll { $0.writes === writes } }

  /// Ends all reservations.
  func release() {
    for transaction in all { transaction.reservation?.end() }
  }

  private func index(of writes: BlockWrites) -> Int? { all.firstIndex { $0.writes === writes } }
}
