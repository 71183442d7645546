package import Dendro
import Synchronization

/// Which namespaces a cluster has, for threads that ask at any time.
package final class ClusterNames: Sendable {
  private let address: String
  private let state = Mutex(State())

  private struct State: ~Copyable {
    var reader: ClusterReader?
    var failure: (error: DatabaseError, end: ContinuousClock.Instant)?
  }

  /// After a failure it is not asked again for so long: each attempt may take seconds.
  private static let failurePause = Duration.seconds(1)

  /// - Parameter address: of PostgreSQL, as libpq reads it.
  package init(_ address: String) { self.address = address }

  /// All of them.
  ///
  /// - Throws: `DatabaseError` if PostgreSQL does not answer.
  package func all() throws(DatabaseError) -> [String] {
    try ask { (reader) throws(DatabaseError) in try reader.namespaces() }
  }

  /// Whether there is one with this name.
  ///
  /// - Throws: `DatabaseError` if PostgreSQL does not answer.
  package func has(_ name: String) throws(DatabaseError) -> Bool {
    try ask { (reader) throws(DatabaseError) in try reader.hasNamespace(name) }
  }

  private func ask<R: Sendable>(
    _ question: (ClusterReader) throws(DatabaseError) -> R
  ) throws(DatabaseError) -> R {
    try state.withLock { (state) throws(DatabaseError) -> R in
      if let failure = state.failure, .now < failure.end { throw failure.error }
      do throws(DatabaseError) {
        // A connection that was idle may have been cut, or leads to a primary that the servers have left.
        if let open = state.reader, open.isUsable, let answer = try? question(open) {
          return answer
        }
        let new = try ClusterReader(address, hosts: .of(address))
        state.reader = new
        state.failure = nil
        return try question(new)
      } catch {
        state.reader = nil
        state.failure = (error, .now + Self.failurePause)
        throw error
      }
    }
  }
}
