#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#elseif canImport(Darwin)
  import Darwin
#endif
import Synchronization

/// Callers pass while it is open and wait while it is closed: those that may, on their threads, the others
/// without holding one.
final class Gate: @unchecked Sendable {
  // Unchecked: the mutex guards the condition's state and the queue of tasks; `isClosed` is atomic so that
  // passing an open gate costs one load.
  private let mutex = UnsafeMutablePointer<pthread_mutex_t>.allocate(capacity: 1)
  private let condition = UnsafeMutablePointer<pthread_cond_t>.allocate(capacity: 1)
  private let isClosed = Atomic<Bool>(false)
  private let heldThreads = Atomic<Int>(0)
  /// Tasks that wait: those of the first list are next, its last one first.
  private var nextTasks: [UnsafeContinuation<Bool, Never>] = []
  private var laterTasks: [UnsafeContinuation<Bool, Never>] = []

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

  /// Lets everybody pass who holds a thread, and of the tasks the first one.
  func open() {
    guard isClosed.load(ordering: .acquiring) else { return }
    pthread_mutex_lock(mutex)
    isClosed.store(false, ordering: .releasing)
    pthread_cond_broadcast(condition)
    let task = popTask()
    pthread_mutex_unlock(mutex)
    task?.resume(returning: true)
  }

  /// Waits on the calling thread.
  func wait() {
    guard isClosed.load(ordering: .acquiring) else { return }
    heldThreads.add(1, ordering: .relaxed)
    pthread_mutex_lock(mutex)
    while isClosed.load(ordering: .acquiring) { pthread_cond_wait(condition, mutex) }
    pthread_mutex_unlock(mutex)
    heldThreads.subtract(1, ordering: .relaxed)
  }

  /// Threads that wait at this moment.
  var heldThreadCount: Int { heldThreads.load(ordering: .relaxed) }

  /// Waits without holding a thread. Tasks pass in the order in which they came, one after the other, so
  /// that a thousand of them do not all pass at the moment in which there is room for one.
  ///
  /// - Returns: whether it waited: then it is to call `passOn()` once it has done what it waited for.
  func pass() async -> Bool {
    guard isClosed.load(ordering: .acquiring) else { return false }
    return await withUnsafeContinuation { task in
      pthread_mutex_lock(mutex)
      let waits = isClosed.load(ordering: .acquiring)
      if waits { laterTasks.append(task) }
      pthread_mutex_unlock(mutex)
      if !waits { task.resume(returning: false) }
    }
  }

  /// Lets the next task pass, if the gate is still open; otherwise that is done when it opens.
  func passOn() {
    pthread_mutex_lock(mutex)
    let task = isClosed.load(ordering: .acquiring) ? nil : popTask()
    pthread_mutex_unlock(mutex)
    task?.resume(returning: true)
  }

  private func popTask() -> UnsafeContinuation<Bool, Never>? {
    if nextTasks.isEmpty {
      nextTasks = laterTasks.reversed()
      laterTasks = []
    }
    return nextTasks.popLast()
  }
}
