import DendroEngine
import DendroProtocol
import DendroRules
import DendroStorage
import DendroTree
import Dispatch

// A client that has written at another server, or read there, reads here what it has seen.

extension RESTCall {
  /// Calls `body` once the server shows a write; refuses the request if that takes too long.
  ///
  /// - Parameter lsn: the write's number; nil: at once.
  func whenShown(
    _ lsn: UInt64?, in namespace: Namespace, _ body: @escaping @Sendable () -> Void
  ) {
    guard let lsn, namespace.engine.head.lsn.rawValue < lsn else { return body() }
    // Who may read nothing, whatever the data is, does not wait for it.
    let rights = service.rights(in: namespace)
    guard
      rights.rules(for: identity) != nil
        || service.authorizer.mayAllow(
          .read(RuleQuery(request.query)), at: request.resource.path ?? .root, in: namespace.name,
          identity)
    else { return refuse(.permissionDenied) }
    let limit = min(request.timeout ?? Self.waitLimit, Self.waitLimit)
    wait(for: lsn, in: namespace, until: .now + limit, pause: .milliseconds(1), body)
  }

  private static let waitLimit = Duration.seconds(10)
  /// Between two looks at most: many may wait.
  private static let pauseMax = Duration.milliseconds(64)

  private func wait(
    for lsn: UInt64, in namespace: Namespace, until deadline: ContinuousClock.Instant,
    pause: Duration, _ body: @escaping @Sendable () -> Void
  ) {
    service.workers.asyncAfter(deadline: .now() + .nanoseconds(Int(pause / .nanoseconds(1)))) {
      if namespace.engine.head.lsn.rawValue >= lsn { return body() }
      guard .now < deadline else {
        return refuse(RESTError(504, "This server does not show write \(lsn) yet."))
      }
      wait(
        for: lsn, in: namespace, until: deadline, pause: min(pause * 2, Self.pauseMax), body)
    }
  }
}
