import Dispatch
import Foundation
import Synchronization

/// Threads for work that waits for the disk or takes long, which neither the caller's thread nor those of
/// Swift's concurrency should do.
///
/// Each is the thread of a serial queue, which gets one even if the application keeps the shared threads
/// of the global queues busy.
enum BackgroundThread {
  static func start(_ name: ThreadName, _ body: @escaping @Sendable () -> Void) {
    DispatchQueue(label: name.rawValue, autoreleaseFrequency: .workItem).async { name.during(body) }
  }

  /// Runs `body` on a new thread, and waits for its result without blocking the caller's.
  static func run<Value: Sendable, Failure: Error>(
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

  /// Runs `body`, which may wait for the disk, as `read(_:)` does, and waits for its result without blocking the
  /// caller's thread.
  static func read<Value: Sendable, Failure: Error>(
    _ body: @escaping @Sendable () throws(Failure) -> Value
  ) async throws(Failure) -> Value {
    let result = await withCheckedContinuation { continuation in
      read { continuation.resume(returning: Result(catching: body)) }
    }
    return try result.get()
  }

  private static let nextReader = Atomic<UInt>(0)
  private static let readers = (0..<max(2, ProcessInfo.processInfo.activeProcessorCount)).map { _ in
    DispatchQueue(label: ThreadName.reading.rawValue, autoreleaseFrequency: .workItem)
  }
}
