package import Dendro
import Synchronization

/// Something that happened with a database of a server, for the server's log.
package struct NamespaceEvent: Sendable {
  /// The name of the database.
  package let namespace: String
  package let level: Database.LogMessage.Level
  /// One sentence.
  package let message: String
  /// Details by name.
  package let details: [String: String]

  package init(
    _ namespace: String, _ level: Database.LogMessage.Level, _ message: String,
    _ details: [String: String] = [:]
  ) {
    self.namespace = namespace
    self.level = level
    self.message = message
    self.details = details
  }

  /// What the database itself says.
  package init(_ namespace: String, _ message: Database.LogMessage) {
    self.init(namespace, message.level, message.message, message.metadata)
  }
}

/// The errors of one database that nobody waits for, as events: of equal ones in a row as many as `ErrorLines` lets through.
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
      report(NamespaceEvent(namespace, .error, "an error that nobody waits for", ["error": text]))
    }
  }
}
