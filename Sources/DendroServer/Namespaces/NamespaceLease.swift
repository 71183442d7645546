/// The use of a database by a request or a session. The database stays open for as long as there is one.
///
/// It ends with the last reference to it.
package final class NamespaceLease: Sendable {
  package let namespace: Namespace
  private let ended: (@Sendable () -> Void)?

  /// - Parameter ended: called once nothing uses the database any more.
  init(_ namespace: Namespace, ended: (@Sendable () -> Void)? = nil) {
    self.namespace = namespace
    self.ended = ended
    namespace.beginUse()
  }

  deinit {
    if namespace.endUse() { ended?() }
  }
}
