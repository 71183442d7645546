import Dendro
import DendroPlatform
import DendroTree
import Dispatch
import Synchronization

/// Threads for work that takes long. They leave the processors to threads that want them too, on which clients wait for short
/// work: their nice value is higher.
final class LongWorkThreads: Sendable {
  typealias Work = @Sendable () -> Void

  /// Those of the process. They begin with the first work, and stay.
  private static let shared = LongWorkThreads()

  /// Does some work after all that waits.
  static func async(_ body: @escaping Work) { shared.add(body) }

  /// About a tenth of the time that another thread gets, if both want the same processor. So the other thread usually runs
  /// as soon as it has something to do.
  static let niceValue: Int32 = 10

  private let work = Mutex(Queue<Work>())
  private let available = DispatchSemaphore(value: 0)
  private let count: Int

  private init() {
    var count = 0
    for _ in 0..<max(2, processorCount) where Self.start() { count += 1 }
    self.count = count
  }

  private func add(_ body: @escaping Work) {
    // The system has no thread.
    guard count > 0 else { return DispatchQueue.global().async(execute: body) }
    work.withLock { $0.append(body) }
    available.signal()
  }

  private static func start() -> Bool {
    var thread = pthread_t()
    let result = pthread_create(
      &thread, nil,
      { _ in
        LongWorkThreads.lowerPriority()
        LongWorkThreads.shared.run()
        return nil
      }, nil)
    guard result == 0 else { return false }
    pthread_detach(thread)
    return true
  }

  /// Of the calling thread alone, on Linux.
  private static func lowerPriority() {
    let process = __priority_which_t(PRIO_PROCESS.rawValue)
    setpriority(process, 0, max(getpriority(process, 0), niceValue))
  }

  /// Does not end.
  private func run() {
    while true {
      available.wait()
      work.withLock { $0.popFirst() }?()
    }
  }
}
