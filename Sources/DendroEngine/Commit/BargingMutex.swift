import DendroPlatform

/// A mutex that a running thread may take as soon as it is free, also before threads that wait for it ("barging").
///
/// For a lock that threads hold for less time than it takes to switch threads. On Linux, a thread that unlocks a
/// `Synchronization.Mutex` gives it to one of the threads that wait. That thread sleeps, and until it runs no other
/// thread can take the mutex: the threads that want it meanwhile go to sleep as well.
///
/// Not recursive: a holder that locks it again waits for ever. Not fair: a thread may wait while others take it again
/// and again.
struct BargingMutex<Value: ~Copyable>: ~Copyable, @unchecked Sendable {
  // Unchecked: `value` is used under `mutex` alone, and a body may not return parts of it that others change. Both
  // pointers refer to initialized memory from `init` to `deinit`, and the mutex never moves, as the system asks.
  private let mutex = UnsafeMutablePointer<pthread_mutex_t>.allocate(capacity: 1)
  private let value = UnsafeMutablePointer<Value>.allocate(capacity: 1)

  init(_ initialValue: consuming sending Value) {
    value.initialize(to: initialValue)
    var attributes = pthread_mutexattr_t()
    pthread_mutexattr_init(&attributes)
    #if canImport(Glibc)
      // Tries for a moment before it sleeps.
      pthread_mutexattr_settype(&attributes, CInt(PTHREAD_MUTEX_ADAPTIVE_NP))
    #endif
    pthread_mutex_init(mutex, &attributes)
    pthread_mutexattr_destroy(&attributes)
  }

  deinit {
    pthread_mutex_destroy(mutex)
    mutex.deallocate()
    value.deinitialize(count: 1)
    value.deallocate()
  }

  @inline(__always)
  func withLock<R>(_ body: (inout Value) -> R) -> R {
    pthread_mutex_lock(mutex)
    defer { pthread_mutex_unlock(mutex) }
    return body(&value.pointee)
  }
}
