package import Dendro

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
