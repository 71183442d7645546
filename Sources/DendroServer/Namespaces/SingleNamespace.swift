package import Dendro

/// A single database, under one name or under every name.
package final class SingleNamespace: Namespaces {
  private let only: NamespaceLease
  private let acceptsAll: Bool
  private let closes: Bool

  /// - Parameters:
  ///   - database: open.
  ///   - name: nil for every name.
  ///   - closes: whether the database is closed at the end of the serving.
  /// - Throws: `DatabaseError` if the database is closed; `DatabaseServerError` if another server serves it.
  package init(
    _ database: Database, named name: String?, closes: Bool = false
  ) throws {
    self.closes = closes
    only = NamespaceLease(try Namespace(name ?? "default", database))
    acceptsAll = name == nil
  }

  package func namespace(_ name: String?, makesNew: Bool) throws -> NamespaceLease {
    guard let found = open(name) else { throw NamespaceError.unknown(name ?? "") }
    return found
  }

  package func open(_ name: String?) -> NamespaceLease? {
    acceptsAll || name == nil || name == only.namespace.name ? only : nil
  }

  package func name(of asked: String?) -> String {
    acceptsAll ? only.namespace.name : asked ?? only.namespace.name
  }

  package var flushes: Histogram? { nil }
  package var names: [String] { [only.namespace.name] }
  package var all: [Namespace] { [only.namespace] }

  package func end() throws {
    only.namespace.end()
    if closes { try only.namespace.database.close() }
  }
}
