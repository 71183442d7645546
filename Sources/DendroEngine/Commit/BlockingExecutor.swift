import DendroPlatform
import DendroStorage
import Synchronization

/// A thread that may wait for the disk, which the concurrency pool's threads may not.
///
/// It runs `body` again and again: `body` returns how long the thread waits for a `wake()` before the next
/// run, or nil to end the thread. A wake that comes while `body` runs is not lost.
final class BlockingExecutor: @unchecked Sendable {
  // Unchecked: `mutex` guards `wanted`; `body` changes before the thread starts, and then on the thread alone.
  private let mutex = UnsafeMutablePointer<pthread_mutex_t>.allocate(capacity: 1)
  private let condition = UnsafeMutablePointer<pthread_cond_t>.allocate(capacity: 1)
  private var wanted = false
  private let name: StaticString
  private let niceness: Int32
  /// What the thread runs; nil before its start and after its end. It may refer to the executor: the end of the
  /// thread breaks that cycle.
  private var body: (@Sendable () -> Pause?)?

  enum Pause {
    /// Runs `body` again at once, since there may be more to do.
    case none
    case untilWoken
    case atMost(Duration)
  }

  /// - `name`: of the thread, for debuggers: at most 15 bytes.
  /// - `niceness`: how much lower the thread's priority is than that of the process, 0 to 19. On Linux only:
  ///   elsewhere it is a property of the whole process.
  init(name: StaticString, niceness: Int32 = 0) {
    precondition(name.utf8CodeUnitCount <= 15, "longer names are refused by the system")
    self.name = name
    self.niceness = niceness
    pthread_mutex_init(mutex, nil)
    var attributes = pthread_condattr_t()
    pthread_condattr_init(&attributes)
    #if !canImport(Darwin)
      pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC)
    #endif
    pthread_cond_init(condition, &attributes)
    pthread_condattr_destroy(&attributes)
  }

  deinit {
    pthread_cond_destroy(condition)
    pthread_mutex_destroy(mutex)
    condition.deallocate()
    mutex.deallocate()
  }

  /// Starts the thread. Call again only if it has thrown.
  ///
  /// - Throws: if the system has no thread or no memory for its stack; `body` is released then.
  func start(_ body: @escaping @Sendable () -> Pause?) throws(SystemError) {
    self.body = body
    let executor = Unmanaged.passRetained(self)
    #if canImport(Darwin)
      var thread: pthread_t?
    #else
      var thread = pthread_t()
    #endif
    // The system's headers differ in whether the argument is optional.
    let code = pthread_create(
      &thread, nil,
      { argument in
        let executor: UnsafeMutableRawPointer? = argument
        Unmanaged<BlockingExecutor>.fromOpaque(executor!).takeRetainedValue().run()
        return nil
      }, executor.toOpaque())
    guard code == 0 else {
      self.body = nil
      executor.release()
      throw SystemError(code)
    }
  }

  static var currentThreadID: UInt {
    #if canImport(Darwin)
      UInt(bitPattern: pthread_self())
    #else
      pthread_self()
    #endif
  }

  private func nameThread() {
    name.withUTF8Buffer { name in
      name.withMemoryRebound(to: CChar.self) { name in
        #if canImport(Darwin)
          pthread_setname_np(name.baseAddress!)
        #else
          _ = setThreadName?(pthread_self(), name.baseAddress!)
        #endif
      }
    }
  }

  private func lowerPriority() {
    #if os(Linux)
      if niceness > 0 { _ = nice(niceness) }
    #endif
  }

  private func run() {
    pthread_detach(pthread_self())
    lowerPriority()
    nameThread()
    while let pause = body?() {
      if case .none = pause { continue }
      pthread_mutex_lock(mutex)
      switch pause {
      case .none: break
      case .untilWoken:
        while !wanted { pthread_cond_wait(condition, mutex) }
      case .atMost(let duration):
        // At most a day, so that no sum overflows.
        let (seconds, attoseconds) = min(max(duration, .zero), .seconds(86_400)).components
        let nanoseconds = attoseconds / 1_000_000_000
        #if canImport(Darwin)
          var pause = timespec(tv_sec: Int(seconds), tv_nsec: Int(nanoseconds))
          if !wanted { pthread_cond_timedwait_relative_np(condition, mutex, &pause) }
        #else
          var deadline = timespec()
          clock_gettime(CLOCK_MONOTONIC, &deadline)
          let sum = Int64(deadline.tv_nsec) + nanoseconds
          deadline.tv_sec += Int(seconds + sum / 1_000_000_000)
          deadline.tv_nsec = Int(sum % 1_000_000_000)
          while !wanted {
            if pthread_cond_timedwait(condition, mutex, &deadline) != 0 { break }
          }
        #endif
      }
      wanted = false
      pthread_mutex_unlock(mutex)
    }
    body = nil
  }

  /// Makes `body` run once more, soon. Any thread.
  func wake() {
    pthread_mutex_lock(mutex)
    let isFirst = !wanted
    wanted = true
    if isFirst { pthread_cond_broadcast(condition) }
    pthread_mutex_unlock(mutex)
  }
}

#if !canImport(Darwin)
  /// Looked up by name, since the C headers declare it only behind a macro that Swift does not set.
  private let setThreadName: (@convention(c) (pthread_t, UnsafePointer<CChar>) -> Int32)? =
    dlsym(nil, "pthread_setname_np").map {
      unsafeBitCast($0, to: (@convention(c) (pthread_t, UnsafePointer<CChar>) -> Int32).self)
    }
#endif
