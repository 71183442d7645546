package import Dendro
package import DendroEngine
import DendroProtocol
import Dispatch
import Synchronization

/// Finds the database that a request is for.
package protocol Namespaces: Sendable {
  /// The database with this name, which is opened if it is not. May take as long as opening it takes, and closing another
  /// one for it.
  ///
  /// - Parameters:
  ///   - name: valid; nil if the request names none.
  ///   - makesNew: whether a database that does not exist is made. The one without a name always is.
  func namespace(_ name: String?, makesNew: Bool) throws -> NamespaceLease
  /// Whether databases are made under names that are asked for.
  var makesNamespaces: Bool { get }
  /// Whether other servers have the same databases.
  var havePeers: Bool { get }
  /// Why none could be made under a name; nil if it could.
  func refusal(ofMaking name: String?) -> NamespaceError?
  /// The database with this name, if that takes no time.
  func open(_ name: String?) -> NamespaceLease?
  /// What is left of the database with this name, if it is damaged and cannot be opened for that reason; nil otherwise, or
  /// if no location is surely as it was. May take as long as reading all of its files takes.
  func remains(of name: String?) -> Namespace?
  /// The names of all databases.
  var names: [String] { get }
  /// All that are open. They may be closed at any moment.
  var all: [Namespace] { get }
  /// Once the serving has ended, those that were open then: closed, they still have their last states.
  var atEnd: [Namespace] { get }
  /// The name of the database that a request for `asked` is for; nil if the request names none.
  func name(of asked: String?) -> String
  /// The databases that could not be opened when they were last asked for, and why.
  var failures: [String: DatabaseError] { get }
  /// How often one could not be opened for a reason that was not known yet.
  var failureCount: UInt64 { get }
  /// What has gone wrong with databases since the serving began, those included that are closed by now.
  var failureCounts: [FailureKind: UInt64] { get }
  /// Whether `openMissing` has something to do.
  var hasMissing: Bool { get }
  /// Opens the database without a name if there is one, and tries those again that could not be opened. May take as
  /// long as opening them takes.
  func openMissing()
  /// Writes what clients had registered when a server crashed, in databases that are not open yet. May take as long as
  /// opening them takes; what cannot be opened is passed over.
  func writeLeftovers()
  /// Opens databases that other servers have made, so that this one takes part in them, and returns them. May take as long as
  /// opening them takes.
  func openNew() -> [Namespace]
  /// Closes databases that were not used for a long time. May take as long as closing them takes.
  func closeIdle()
  /// How long synchronizes of the log take; nil if the databases were not opened here.
  var flushes: Histogram? { get }
  /// Has writes end soon that wait for other servers, in databases that `end` closes.
  func stopWaiting()
  /// Ends the serving. Databases that were opened here are closed.
  func end() throws
}

/// Why there is no database for a request.
package enum NamespaceError: Error {
  case unknown(String)
  /// So many are in use.
  case tooMany(limit: Int)
  /// So many exist that no request makes another one.
  case tooManyExist(limit: Int)
  /// Something other than a directory has the name.
  case noDirectory(String)
  /// The process has too many files open.
  case noDescriptors
  case ended
}

extension Namespaces {
  package var makesNamespaces: Bool { false }
  package var havePeers: Bool { false }
  package var atEnd: [Namespace] { all }
  package func refusal(ofMaking name: String?) -> NamespaceError? { nil }
  package func remains(of name: String?) -> Namespace? { nil }
  package func writeLeftovers() {}
  package func openNew() -> [Namespace] { [] }
  package func closeIdle() {}
  package var failures: [String: DatabaseError] { [:] }
  package var failureCount: UInt64 { 0 }
  package var failureCounts: [FailureKind: UInt64] {
    all.reduce(into: [:]) { counts, namespace in
      counts.merge(namespace.engine.statistics().failureCounts, uniquingKeysWith: +)
    }
  }
  package var hasMissing: Bool { false }
  package func openMissing() {}
  package func stopWaiting() {}
}
