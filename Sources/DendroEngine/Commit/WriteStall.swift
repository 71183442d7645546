import DendroPlatform
import Synchronization

/// Where writers wait while the disk is behind or full: blocking calls on their threads, tasks suspended.
///
/// A writer that admission turns away begins a stall under the admission lock. The thread that has the turn ends it
/// once it has taken the open batch or has probed a full disk. A writer that passes is offered to admission
/// again.
final class WriteStall: @unchecked Sendable {
  // Unchecked: the mutex guards the condition's state and the queue of tasks; `isStalled` is atomic so that
  // `end()` costs one load if no stall has begun.
  private let mutex = UnsafeMutablePointer<pthread_mutex_t>.allocate(capacity: 1)
  private let condition = UnsafeMutablePointer<pthread_cond_t>.allocate(capacity: 1)
  private let isStalled = Atomic<Bool>(false)
  private let heldThreads = Atomic<Int>(0)
  /// Waiting tasks: first those of `nextTasks` from its end, then those of `laterTasks` from its beginning.
  private var nextTasks: [UnsafeContinuation<Void, Never>] = []
  private var laterTasks: [UnsafeContinuation<Void, Never>] = []

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

  func begin() { isStalled.store(true, ordering: .releasing) }

  /// Lets all waiting threads pass, and the first of the tasks.
  func end() {
    guard isStalled.load(ordering: .acquiring) else { return }
    pthread_mutex_lock(mutex)
    isStalled.store(false, ordering: .releasing)
    pthread_cond_broadcast(condition)
    let task = popTask()
    pthread_mutex_unlock(mutex)
    task?.resume()
  }

  /// Waits on the calling thread.
  func wait() {
    guard isStalled.load(ordering: .acquiring) else { return }
    heldThreads.add(1, ordering: .relaxed)
    pthread_mutex_lock(mutex)
    while isStalled.load(ordering: .acquiring) { pthread_cond_wait(condition, mutex) }
    pthread_mutex_unlock(mutex)
    heldThreads.subtract(1, ordering: .relaxed)
  }

  /// Threads that wait at this moment.
  var heldThreadCount: Int { heldThreads.load(ordering: .relaxed) }

  /// Tasks that wait at this moment.
  var waitingTaskCount: Int {
    pthread_mutex_lock(mutex)
    defer { pthread_mutex_unlock(mutex) }
    return nextTasks.count + laterTasks.count
  }

  /// Waits without blocking a thread. Tasks pass in the order in which they came, one after the other, so
  /// that not a thousand of them pass when there is room for one.
  ///
  /// Call `passOn()` once the write was offered to admission again.
  ///
  /// - Parameter isFirst: whether the task has waited before and hence comes before the others.
  func waitSuspended(isFirst: Bool) async {
    await withUnsafeContinuation { task in
      pthread_mutex_lock(mutex)
      let waits = isStalled.load(ordering: .acquiring)
      if waits {
        if isFirst {
          nextTasks.append(task)
        } else {
          laterTasks.append(task)
        }
      }
      pthread_mutex_unlock(mutex)
      if !waits { task.resume() }
    }
  }

  /// Lets the next task pass, unless another stall has begun: then the end of that one does.
  func passOn() {
    pthread_mutex_lock(mutex)
    let task = isStalled.load(ordering: .acquiring) ? nil : popTask()
    pthread_mutex_unlock(mutex)
    task?.resume()
  }

  private func popTask() -> UnsafeContinuation<Void, Never>? {
    if nextTasks.isEmpty {
      nextTasks = laterTasks.reversed()
      laterTasks = []
    }
    return nextTasks.popLast()
  }
}
