import DendroEngine
import DendroStorage

/// Why a server of a cluster cannot go on.
enum ClusterError: Error {
  case postgres(PostgresError)
  case engine(EngineError)
  /// A row of the shared log is no batch, or not the one that its chain says.
  case damagedBatch(LogSequenceNumber, String)
  /// The schema is of a newer release.
  case newerSchema(version: Int64)
  /// The directory is a copy of another cluster's data, or of another namespace.
  case otherCluster(String)
  /// The shared log is another one than that of which this server has a copy: PostgreSQL was set back.
  case setBack(String)
  /// Files of the directory, besides those of the engine.
  case files(String)
}

extension ClusterError: CustomStringConvertible {
  var description: String {
    switch self {
    case .postgres(let error): "\(error)"
    case .engine(let error): error.description
    case .damagedBatch(let lsn, let reason):
      "the batch of write \(lsn) in the shared log is damaged: \(reason)"
    case .newerSchema(let version):
      "the schema dendro has version \(version), and this release knows \(ClusterSchema.version)"
    case .otherCluster(let reason), .setBack(let reason), .files(let reason): reason
    }
  }
}
