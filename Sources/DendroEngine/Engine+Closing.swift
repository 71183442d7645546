package import DendroTree
import Synchronization

extension Engine {
  /// Commits everything that was admitted, synchronizes, and releases the directory.
  ///
  /// - Parameter last: admitted as the last write, whether or not a transaction's block is running, on
  ///   this thread or another; `options.unreportedFailure` gets a failure.
  /// - Throws: if the disk refuses; the engine is closed nevertheless. Later writes get `.closed`;
  ///   views stay valid. A second call returns once the directory is free, and throws
  ///   nothing.
  package func close(writing last: EncodedWrite? = nil) throws(EngineError) {
    try wait { self.close(writing: last, $0) }
  }

  /// `close(writing:)` without blocking a thread.
  @concurrent package func close(writing last: EncodedWrite? = nil) async throws(EngineError) {
    try await suspend { self.close(writing: last, $0) }
  }

  private func close(writing last: EncodedWrite?, _ completion: @escaping Completion) {
    guard beginClosing() else {
      refuse(last)
      return notifyWhenClosed(completion)
    }
    requestClose(writing: admissible(last)) { result in
      self.endClosing()
      completion(result)
    }
  }

  private func refuse(_ last: EncodedWrite?) { if last != nil { pipeline.report(.closed, nil) } }

  private func admissible(_ last: EncodedWrite?) -> EncodedWrite? {
    guard last != nil, let refusal else { return last }
    pipeline.report(refusal, nil)
    return nil
  }

  func requestClose(writing last: EncodedWrite?, _ completion: @escaping Completion) {
    pipeline.groupCommit.shared?.engineCloses()
    history?.close()
    logFollower?.close()
    follower.withLock { follower in
      follower?.close()
      follower = nil
    }
    let pipeline = pipeline
    if let checkpointing {
      checkpointing.stop { pipeline.requestClose(writing: last, completion) }
    } else {
      pipeline.requestClose(writing: last, completion)
    }
  }

  /// Returns once a `close()` on another thread has ended, which may not have begun yet.
  package func waitUntilClosed() throws(EngineError) { try wait(notifyWhenClosed) }

  /// `waitUntilClosed()` without blocking a thread.
  @concurrent package func waitUntilClosed() async throws(EngineError) {
    try await suspend(notifyWhenClosed)
  }

  struct Closing: Sendable {
    var hasBegun = false
    var hasEnded = false
    /// The completions of the calls that wait for the first one.
    var waiters: [Completion] = []
  }

  /// The number of calls that wait for a `close()` at this moment.
  var closeWaiterCount: Int { closing.withLock { $0.waiters.count } }

  /// - Returns: whether this is the first time.
  func beginClosing() -> Bool {
    closing.withLock { closing in
      defer { closing.hasBegun = true }
      return !closing.hasBegun
    }
  }

  private func endClosing() {
    let waiters = closing.withLock { closing in
      defer { closing = Closing(hasBegun: true, hasEnded: true) }
      return closing.waiters
    }
    for waiter in waiters { waiter(.success(nil)) }
  }

  private func notifyWhenClosed(_ waiter: @escaping Completion) {
    let hasEnded = closing.withLock { closing in
      if !closing.hasEnded { closing.waiters.append(waiter) }
      return closing.hasEnded
    }
    if hasEnded { waiter(.success(nil)) }
  }
}
