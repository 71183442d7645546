/// A listener that ends itself: it is removed when its token is released, or by ``cancel()``.
///
/// ```swift
/// final class Scoreboard {
///   private let token: ListenerToken
///
///   init(_ scores: DatabaseReference) {
///     token = scores.listen(to: .value) { print("scores: \($0.childrenCount)") }
///   }
/// }
/// ```
///
/// What holds the token must not be held by the listener's block, or neither is ever released: capture it weakly there.
/// Any thread may use a token, and release it. While the listener is registered the database stays open.
public final class ListenerToken: Sendable {
  private let query: DatabaseQuery
  private let handle: DatabaseHandle

  init(_ query: DatabaseQuery, _ handle: DatabaseHandle) {
    self.query = query
    self.handle = handle
  }

  deinit { cancel() }

  /// Removes the listener; does nothing if it is gone. Once this has returned on the actor of the block, or on
  /// ``Database/callbackQueue`` if it has none, the block is not called again; elsewhere a call that has begun may still
  /// run.
  public func cancel() { query.removeObserver(withHandle: handle) }
}
