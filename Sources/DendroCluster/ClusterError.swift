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
  /// The log no longer has what is asked for: it was trimmed behind a checkpoint.
  case trimmed(String)
  /// What PostgreSQL has of a checkpoint is not what was published.
  case damagedCheckpoint(LogSequenceNumber, String)
  /// Files of the directory, besides those of the engine.
  case files(String)
}

extension ClusterError {
  /// Calls `body`, which calls the engine.
  static func ofEngine<R>(_ body: () throws(EngineError) -> R) throws(ClusterError) -> R {
    do throws(EngineError) {
      return try body()
    } catch {
      throw .engine(error)
    }
  }
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
    case .damagedCheckpoint(let lsn, let reason):
      "the checkpoint at write \(lsn) in PostgreSQL is damaged: \(reason)"
    case .otherCluster(let reason), .setBack(let reason), .trimmed(let reason), .files(let reason):
      reason
    }
  }
}
