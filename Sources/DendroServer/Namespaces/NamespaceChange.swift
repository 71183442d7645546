import Synchronization

/// The opening or closing of one database. The first thread that needs the outcome does the work, and those that come
/// meanwhile wait for it.
final class NamespaceChange: Sendable {
  private let body: @Sendable () throws -> NamespaceLease?
  /// The lock is held by the thread that does the work.
  private let outcome = Mutex<Result<Void, any Error>?>(nil)

  /// - Parameter body: called once; returns the use of the database if it is open then.
  init(_ body: @escaping @Sendable () throws -> NamespaceLease?) { self.body = body }

  /// - Returns: what `body` has returned; nil if another thread has called it.
  /// - Throws: what `body` has thrown, to every thread.
  func perform() throws -> NamespaceLease? {
    try outcome.withLock { outcome in
      if let outcome {
        try outcome.get()
        return nil
      }
      do {
        let lease = try body()
        outcome = .success(())
        return lease
      } catch {
        outcome = .failure(error)
        throw error
      }
    }
  }
}
