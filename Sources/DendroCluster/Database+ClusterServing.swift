package import Dendro
import Foundation

extension Database {
  /// As `open(at:replicatedBy:namespace:lines:options:)`, for a server that takes requests: its clients see a write once
  /// PostgreSQL has it.
  ///
  /// - Parameters:
  ///   - ownAddress: where clients reach it. The other servers name it while this one leads.
  ///   - lines: by which the other servers reach it, and it them; nil: all goes through PostgreSQL.
  package static func open(
    at path: String, replicatedBy address: String, namespace: String, reachedAt ownAddress: String,
    lines: ServerLines?, options: DatabaseOptions
  ) throws(DatabaseError) -> Database {
    var cluster = ClusterOptions(address, namespace)
    cluster.ownAddress = ownAddress
    cluster.lines = lines
    // Clients of one server tell those of others what they have seen.
    cluster.showsAtOnce = false
    cluster.spreadDelay = .seconds(30)
    return try ClusterOpening(path, cluster, options).run()
  }

  /// Whether a directory is that of one server and one namespace of a cluster.
  package static func isClusterCopy(at path: String) -> Bool {
    // As `CopyFile` begins.
    let file = FileHandle(forReadingAtPath: path + "/cluster")
    return (try? file?.read(upToCount: 8)) == Data("DndClust".utf8)
  }

  /// The database of a directory that is a server's copy of a namespace.
  package static func clusterCopy(at path: String) -> String { path + "/data" }
}
