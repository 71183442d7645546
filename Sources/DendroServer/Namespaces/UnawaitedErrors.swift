package import Dendro
import Synchronization

/// Reports the errors of one database for which no caller waits. If the same error comes again and again, `ErrorLines` says
/// how often it is reported.
package final class UnawaitedErrors: Sendable {
  private let namespace: String
  private let report: @Sendable (NamespaceEvent) -> Void
  private let lines = Mutex(ErrorLines())

  package init(of namespace: String, report: @escaping @Sendable (NamespaceEvent) -> Void) {
    self.namespace = namespace
    self.report = report
  }

  package func add(_ error: DatabaseError) {
    let due = lines.withLock { lines in
      lines.add(error.message, at: .now)
      return lines.take()
    }
    for text in due {
      report(NamespaceEvent(namespace, .error, "an operation has failed", ["error": text]))
    }
  }
}
