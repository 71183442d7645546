package import DendroTree

/// The two trees that a log is replayed to: the data, and what is kept beside them, which no reference, query, listener
/// or export shows.
package struct TreeRoots: Sendable {
  package var data: Node
  package var system: Node

  package init(data: Node = .empty, system: Node = .empty) {
    self.data = data
    self.system = system
  }

  /// Applies a write of the log.
  package mutating func apply(_ logged: LoggedWrite) {
    _ = data.apply(logged.write)
    if let change = logged.system { _ = system.apply(change) }
  }
}
