import Dispatch
import Synchronization

/// Threads that wait until one more database may be open.
///
/// They are few, and wait for a short time: other requests may need the threads.
final class NamespaceRoom: Sendable {
  private let waiting = Mutex<[DispatchSemaphore]>([])
  private static let waitingCountMax = 16
  private static let patience: DispatchTimeInterval = .seconds(1)

  /// One thread that waits. What happens from now on is noticed.
  struct Place {
    fileprivate let signal = DispatchSemaphore(value: 0)
    fileprivate let deadline = DispatchTime.now() + NamespaceRoom.patience

    /// Waits until there may be room.
    ///
    /// - Returns: false if there was none for too long.
    func wait() -> Bool { signal.wait(timeout: deadline) == .success }
  }

  /// - Returns: nil if enough threads wait. The caller calls `leave` in the end.
  func join() -> Place? {
    waiting.withLock { waiting in
      guard waiting.count < Self.waitingCountMax else { return nil }
      let place = Place()
      waiting.append(place.signal)
      return place
    }
  }

  func leave(_ place: Place) { waiting.withLock { $0.removeAll { $0 === place.signal } } }

  /// There may be room.
  func signal() {
    for signal in waiting.withLock({ $0 }) { signal.signal() }
  }
}
