import Dispatch
import Foundation
import Synchronization

/// Threads for work that waits for the disk or takes long, which neither the caller's thread nor those of
/// Swift's concurrency should do.
///
/// Each is the thread of a serial queue: such a queue gets one however busy the application keeps the
/// global queues, whose threads are few and shared.
enum BackgroundThread {
  static func start(_ name: ThreadName, _ body: @escaping @Sendable () -> Void) {
    DispatchQueue(label: name.rawValue, autoreleaseFrequency: .workItem).async { name.during(body) }
  }

  /// `start`, and waits for what `body` returns without holding a thread.
  nonisolated(nonsending) static func run<Value: Sendable, Failure: Error>(
    _ name: ThreadName, _ body: @escaping @Sendable () throws(Failure) -> Value
  ) async throws(Failure) -> Value {
    let result = await withCheckedContinuation { continuation in
      start(name) { continuation.resume(returning: Result(catching: body)) }
    }
    return try result.get()
  }

  // MARK: Reading

  /// Runs `body`, which filters or sorts many children: as many at once as there are processors.
  static func read(_ body: @escaping @Sendable () -> Void) {
    let turn = nextReader.wrappingAdd(1, ordering: .relaxed).newValue
    readers[Int(turn % UInt(readers.count))].async { ThreadName.reading.during(body) }
  }

  private static let nextReader = Atomic<UInt>(0)
  private static let readers = (0..<max(2, ProcessInfo.processInfo.activeProcessorCount)).map { _ in
    DispatchQueue(label: ThreadName.reading.rawValue, autoreleaseFrequency: .workItem)
  }
}
