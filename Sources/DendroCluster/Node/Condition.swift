import DendroPlatform

/// Wakes threads that wait for a change. A clock that is set does not matter.
final class Condition: @unchecked Sendable {
  // Unchecked: `count` is used under `mutex`. Both pointers refer to initialized memory from `init` to `deinit`, and all
  // threads may use what is there.
  private let mutex = UnsafeMutablePointer<pthread_mutex_t>.allocate(capacity: 1)
  private let condition = UnsafeMutablePointer<pthread_cond_t>.allocate(capacity: 1)
  private var count: UInt64 = 0

  init() {
    pthread_mutex_init(mutex, nil)
    var attributes = pthread_condattr_t()
    pthread_condattr_init(&attributes)
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC)
    pthread_cond_init(condition, &attributes)
    pthread_condattr_destroy(&attributes)
  }

  deinit {
    pthread_cond_destroy(condition)
    pthread_mutex_destroy(mutex)
    condition.deallocate()
    mutex.deallocate()
  }

  /// How many signals there were.
  var signalCount: UInt64 {
    pthread_mutex_lock(mutex)
    defer { pthread_mutex_unlock(mutex) }
    return count
  }

  func signal() {
    pthread_mutex_lock(mutex)
    count += 1
    pthread_cond_broadcast(condition)
    pthread_mutex_unlock(mutex)
  }

  /// Waits until there were more signals.
  ///
  /// - Returns: false if the time is over.
  func wait(behind seen: UInt64, until deadline: ContinuousClock.Instant) -> Bool {
    pthread_mutex_lock(mutex)
    defer { pthread_mutex_unlock(mutex) }
    while count == seen {
      let rest = deadline - .now
      if rest <= .zero { return false }
      let (seconds, attoseconds) = rest.components
      var end = timespec()
      clock_gettime(CLOCK_MONOTONIC, &end)
      end.tv_sec += Int(min(seconds, 1_000_000_000))
      end.tv_nsec += Int(attoseconds / 1_000_000_000)
      if end.tv_nsec >= 1_000_000_000 {
        end.tv_nsec -= 1_000_000_000
        end.tv_sec += 1
      }
      pthread_cond_timedwait(condition, mutex, &end)
    }
    return true
  }
}
