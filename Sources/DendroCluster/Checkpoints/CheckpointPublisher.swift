import DendroEngine
import DendroStorage
import Foundation
import Synchronization

/// When a server publishes a checkpoint, and what its publishing thread waits for: a state of the data at the end of a batch.
///
/// The threads that follow and lead look here often and do not wait. The publishing thread (`CheckpointPublishing`) runs for
/// one attempt at a time.
final class CheckpointPublisher: Sendable {
  /// Ends the waits of the publishing thread, when the server stops.
  let interruption: Interruption
  private let condition = Condition()
  private let state = Mutex(State())

  private struct State {
    var isRunning = false
    var isStopped = false
    var wantsState = false
    var offered: Offer?
    /// The bytes of log, as this server counts them, from which on it looks whether a checkpoint is due. The first ones
    /// make it look at what was there before.
    var nextLook: Int64 = 1
    var watched: Watched?
  }

  /// A state that stands in the shared log, and where it does.
  struct Offer: Sendable {
    var state: HistoryState
    var position: LogPosition
  }

  private struct Watched {
    var publisher: ClusterSession.Publisher
    var since: ContinuousClock.Instant
  }

  init() throws(PostgresError) { interruption = try Interruption() }

  // MARK: For the threads that follow and lead

  /// Whether the publishing thread waits for a state.
  var wantsState: Bool { state.withLock { $0.wantsState } }

  /// Gives the publishing thread the state that it waits for.
  ///
  /// - Parameter position: where the log ends with the state's last write; for any other position nothing is given.
  func offer(_ offered: HistoryState, at position: LogPosition) {
    guard offered.lsn == position.lsn else { return }
    let isTaken = state.withLock { state in
      guard state.wantsState else { return false }
      state.wantsState = false
      state.offered = Offer(state: offered, position: position)
      return true
    }
    if isTaken { condition.signal() }
  }

  /// Whether a thread is to look now whether a checkpoint is due. If so, `ended(nextLook:)` has to be called.
  ///
  /// - Parameter byteCount: what the log has got since the server was opened.
  func begins(at byteCount: Int64) -> Bool {
    state.withLock { state in
      guard !state.isRunning, !state.isStopped, byteCount >= state.nextLook else { return false }
      state.isRunning = true
      return true
    }
  }

  /// Publishes nothing from now on. Returns at once.
  func stop() {
    state.withLock { $0.isStopped = true }
    interruption.set()
    condition.signal()
  }

  // MARK: For the publishing thread

  var isStopped: Bool { state.withLock { $0.isStopped } }

  /// Waits for a state.
  ///
  /// - Returns: nil if none comes so soon, or the server stops.
  func receive(within limit: Duration) -> Offer? {
    let deadline = ContinuousClock.now + limit
    while true {
      let seen = condition.signalCount
      let (offered, isStopped) = state.withLock { state in
        let offered = state.offered.take()
        state.wantsState = offered == nil && !state.isStopped
        return (offered, state.isStopped)
      }
      if let offered { return offered }
      if isStopped || !condition.wait(behind: seen, until: deadline) { break }
    }
    return state.withLock { state in
      state.wantsState = false
      return state.offered.take()
    }
  }

  /// Whether an upload of another server stands still, and has for a time.
  func isAbandoned(_ publisher: ClusterSession.Publisher, after delay: Duration) -> Bool {
    state.withLock { state in
      guard let watched = state.watched, watched.publisher == publisher else {
        state.watched = Watched(publisher: publisher, since: .now)
        return false
      }
      return ContinuousClock.now - watched.since >= delay
    }
  }

  /// The thread is at its end.
  func ended(nextLook: Int64) {
    state.withLock { state in
      state.isRunning = false
      state.nextLook = nextLook
    }
  }
}

extension ClusterNode {
  /// Has a thread publish a checkpoint if one is due, and gives it the state that it waits for.
  ///
  /// - Parameters:
  ///   - byteCount: what the log has got since the server was opened, as this server has seen it.
  ///   - position: where this server's copy of the log ends; nil if that is not known.
  func considerCheckpoint(logged byteCount: Int64, at position: LogPosition?) {
    if publisher.wantsState, let position, let state = state(at: position.lsn) {
      publisher.offer(state, at: position)
    }
    guard publisher.begins(at: byteCount) else { return }
    let thread = Thread { [self] in
      publisher.ended(nextLook: byteCount + CheckpointPublishing.run(self))
    }
    thread.name = "dendro-publish"
    thread.start()
  }

  /// The engine's head, if this is its last write.
  func state(at lsn: LogSequenceNumber) -> HistoryState? {
    (try? withEngine { $0.state(at: lsn) }) ?? nil
  }
}
