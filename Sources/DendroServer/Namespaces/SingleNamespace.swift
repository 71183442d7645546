package import Dendro

/// A single database, under one name or under every name.
package final class SingleNamespace: Namespaces {
  private let only: Namespace
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
    only = try Namespace(name ?? "default", database)
    acceptsAll = name == nil
  }

  package func namespace(_ name: String?, makesNew: Bool) throws -> Namespace {
    guard let found = open(name) else { throw NamespaceError.unknown(name ?? "") }
    return found
  }

  package func open(_ name: String?) -> Namespace? {
    acceptsAll || name == nil || name == only.name ? only : nil
  }

  package func name(of asked: String?) -> String {
    acceptsAll ? only.name : asked ?? only.name
  }

  package var flushes: Histogram? { nil }
  package var names: [String] { [only.name] }
  package var all: [Namespace] { [only] }

  package func end() throws {
    only.end()
    if closes { try only.database.close() }
  }
}
