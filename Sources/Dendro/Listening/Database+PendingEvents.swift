import DendroEngine
import DendroTree

extension Database {
  /// Waits until all that was written before the call has been told: listeners have got its events, and completion blocks
  /// were called, each of which comes when its write is durable. For tests, and before a program leaves.
  ///
  /// ```swift
  /// try await ref.child("users/ada/name").setValue("Ada")
  /// await database.waitForPendingEvents()
  /// #expect(seen == ["Ada"])
  /// ```
  ///
  /// In a database that keeps in step with a server it waits for no answer: ``waitForPendingWrites()`` comes first then.
  ///
  /// It also waits for the first events of listeners that were registered before, and for blocks that run on actors, but
  /// not for iterators of ``DatabaseQuery/snapshots`` and the like, which take their elements themselves. It returns at
  /// once if the task is cancelled. As long as ``callbackQueue`` stands still it does not return.
  public func waitForPendingEvents() async {
    let (delivered, continuation) = AsyncStream.makeStream(of: Never.self)
    let tell = { @Sendable [hub] in hub.enqueueAfterReads { continuation.finish() } }
    if let engine = orderingEngine {
      // Behind the completions of all writes before.
      if !engine.submitAtOnce(.nothing, completion: { _ in tell() }) {
        // A task of its own, since a full disk may hold it up for long, and this one may be cancelled.
        Task { await engine.submitSuspended(.nothing) { _ in tell() } }
      }
    } else {
      tell()
    }
    for await _ in delivered {}
  }
}
