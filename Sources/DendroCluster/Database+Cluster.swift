public import Dendro
import DendroEngine
import DendroStorage
import Foundation

extension Database {
  /// Opens a database that several servers have together, over a PostgreSQL that decides which writes stand.
  ///
  /// The directory has a copy of the data, from which reads and listeners are served. One server leads and takes writes;
  /// each acknowledged write is committed in PostgreSQL, as safely as that is configured, whatever
  /// `DatabaseOptions.durability` says. The others show each write once they have it. What is written at them
  /// goes to the leader, and shows and returns once it has come back; so does what transactions make, whose blocks run again
  /// if the leader has something else at their location. If the leader is gone for three seconds, another one takes over. See
  /// <doc:DendroCluster>.
  ///
  /// - Parameters:
  ///   - path: absolute or relative to the working directory; made if it is missing. One server's, and one namespace's.
  ///   - address: of PostgreSQL: a `postgresql://` URL, or a line of keys and values as libpq reads it. The password
  ///     rather stands in a `PGPASSFILE` or a service file than here.
  ///   - namespace: which of the databases that the cluster has; made if it is new.
  ///   - lines: by which other servers reach this program while it leads; nil: it opens lines to others, and takes none.
  ///   - options: how the database behaves. `DatabaseOptions.durability` and `DatabaseOptions.loading` do not count,
  ///     and a write has 16 MB at most.
  /// - Throws: `DatabaseError`: `DatabaseError.Code.unavailable` if PostgreSQL does not answer within ten seconds,
  ///   `DatabaseError.Code.invalidArgument` if the directory belongs to another cluster or namespace,
  ///   `DatabaseError.Code.corrupt` if PostgreSQL was set back to a time before writes that the directory has,
  ///   `DatabaseError.Code.locked` with the holder's process id.
  /// - Complexity: O(log since the newest checkpoint, and what the log in PostgreSQL has beyond).
  public static func open(
    at path: String, replicatedBy address: String, namespace: String, lines: ServerLines? = nil,
    options: DatabaseOptions = DatabaseOptions()
  ) throws -> Database {
    var cluster = ClusterOptions(address, namespace)
    if let lines { cluster.lines = lines }
    return try ClusterOpening(path, cluster, options).run()
  }

  /// `open(at:replicatedBy:namespace:lines:options:)` on a thread of its own.
  public static func open(
    at path: String, replicatedBy address: String, namespace: String, lines: ServerLines? = nil,
    options: DatabaseOptions = DatabaseOptions()
  ) async throws -> Database {
    let result = await withCheckedContinuation { continuation in
      let thread = Thread {
        continuation.resume(
          returning: Result {
            try open(
              at: path, replicatedBy: address, namespace: namespace, lines: lines,
              options: options) as Database
          })
      }
      thread.name = "dendro-open"
      thread.start()
    }
    return try result.get()
  }

  /// This server's part in the cluster at the moment; nil for a database that decides alone.
  public var clusterStatus: ClusterStatus? {
    (sharedLog as? ClusterNode).map { ClusterStatus($0) }
  }
}
