import Dendro
import Dispatch
import Foundation
import Testing

/// Runs `body` on a thread of its own.
func start(_ body: @escaping @Sendable () -> Void) { Thread.detachNewThread(body) }

/// Runs `body` on a thread of its own, and waits for its end.
func elsewhere(_ body: @escaping @Sendable () -> Void) {
  let done = DispatchSemaphore(value: 0)
  start {
    body()
    done.signal()
  }
  done.wait()
}

/// How a transaction ended, in one line: error, committed, snapshot.
func line(_ error: (any Error)?, _ committed: Bool, _ snapshot: DataSnapshot?) -> String {
  let error = (error as? DatabaseError)?.name ?? error.map { "\($0)" } ?? "nil"
  return "\(error), \(committed), \(snapshot.map { shown($0.valueInExportFormat()) } ?? "nil")"
}

extension DatabaseReference {
  /// `runTransactionBlock` with a completion block, awaited.
  func ending(
    _ block: @escaping @Sendable (MutableData) -> TransactionResult
  ) async -> String {
    await withCheckedContinuation { continuation in
      runTransactionBlock(block) { error, committed, snapshot in
        continuation.resume(returning: line(error, committed, snapshot))
      }
    }
  }

  var int: Int? { get async throws { try await getData().int } }
}
