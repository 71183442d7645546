package import Dendro

/// A single database that cannot be opened because it is damaged, under one name or under every name.
package final class DamagedNamespace: Namespaces {
  private let directory: DamagedDirectory
  private let error: DatabaseError
  private let only: String
  private let acceptsAll: Bool

  /// - Parameters:
  ///   - path: of the database's directory; absolute.
  ///   - name: nil for every name.
  ///   - error: why it cannot be opened.
  package init(at path: String, named name: String?, because error: DatabaseError) {
    only = name ?? "default"
    acceptsAll = name == nil
    directory = DamagedDirectory(only, at: path)
    self.error = error
  }

  package func namespace(_ name: String?, makesNew: Bool) throws -> NamespaceLease {
    throw has(name) ? error : NamespaceError.unknown(name ?? "")
  }

  package func open(_ name: String?) -> NamespaceLease? { nil }

  package func remains(of name: String?) -> Namespace? { has(name) ? directory.remains : nil }

  private func has(_ name: String?) -> Bool { acceptsAll || name == nil || name == only }

  package func name(of asked: String?) -> String { acceptsAll ? only : asked ?? only }

  package var flushes: Histogram? { nil }
  package var names: [String] { [only] }
  package var all: [Namespace] { [] }
  package var failures: [String: DatabaseError] { [only: error] }
  package var failureCount: UInt64 { 1 }
  package func end() {}
}
