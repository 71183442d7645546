#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#elseif canImport(Darwin)
  import Darwin
#endif
import Synchronization

/// Callers pass while it is open and wait while it is closed.
final class Gate: @unchecked Sendable {
  // Unchecked: the mutex guards the condition's state; `isClosed` is atomic so that passing an open
  // gate costs one load.
  private let mutex = UnsafeMutablePointer<pthread_mutex_t>.allocate(capacity: 1)
  private let condition = UnsafeMutablePointer<pthread_cond_t>.allocate(capacity: 1)
  private let isClosed = Atomic<Bool>(false)

  init() {
    pthread_mutex_init(mutex, nil)
    pthread_cond_init(condition, nil)
  }

  deinit {
    pthread_cond_destroy(condition)
    pthread_mutex_destroy(mutex)
    condition.deallocate()
    mutex.deallocate()
  }

  func close() { isClosed.store(true, ordering: .releasing) }

  func open() {
    guard isClosed.load(ordering: .acquiring) else { return }
    pthread_mutex_lock(mutex)
    isClosed.store(false, ordering: .releasing)
    pthread_cond_broadcast(condition)
    pthread_mutex_unlock(mutex)
  }

  func wait() {
    guard isClosed.load(ordering: .acquiring) else { return }
    pthread_mutex_lock(mutex)
    while isClosed.load(ordering: .acquiring) { pthread_cond_wait(condition, mutex) }
    pthread_mutex_unlock(mutex)
  }
}
