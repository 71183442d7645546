import DendroStorage
private import Synchronization

/// A clock that stands still until a test advances it.
///
/// May be used from any thread.
public final class SimulatedClock: Sendable {
  private let time: Atomic<Int64>

  /// A clock that shows `time`, in milliseconds since 1970. Default: 2024-01-01T00:00:00Z.
  public init(at time: Int64 = 1_704_067_200_000) {
    self.time = Atomic(time)
  }

  /// Milliseconds since 1970-01-01T00:00:00Z.
  public func now() -> Int64 { time.load(ordering: .sequentiallyConsistent) }

  /// Sets the time; setting it back is what real clocks do now and then.
  public func set(to newTime: Int64) { time.store(newTime, ordering: .sequentiallyConsistent) }

  /// Moves the time on by so many milliseconds, back if negative.
  public func advance(by milliseconds: Int64) {
    time.wrappingAdd(milliseconds, ordering: .sequentiallyConsistent)
  }
}

extension SimulatedClock: Clock {}
