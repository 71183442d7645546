package import Dendro

/// Why what an operator asks of a cluster is not done.
package enum RepairFailure: Error {
  /// It must not be done, or there is nothing to do, for this reason.
  case refused(String)
  /// Another cluster, a file, or PostgreSQL is in the way.
  case failed(DatabaseError)

  init(_ error: ClusterError) { self = .failed(DatabaseError(error)) }
}
