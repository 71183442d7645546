import Dendro
import Foundation

extension DatabaseOptions {
  /// Options without automatic checkpoints, so that only the log is measured.
  static func withoutCheckpoints(_ durability: Database.Durability) -> DatabaseOptions {
    var options = DatabaseOptions(durability: durability)
    options.checkpointFactor = 0
    return options
  }
}

extension Turn {
  /// Runs `body` with a new database without automatic checkpoints, and closes it.
  func withDatabase<R>(
    _ durability: Database.Durability = .onRequest, _ body: (Database) async throws -> R
  ) async throws -> R {
    let database = try await Database.open(at: directory, options: .withoutCheckpoints(durability))
    let result = try await body(database)
    try await database.close()
    return result
  }
}

/// The sum of the lengths of all files in a directory.
func byteCount(ofFilesIn url: URL) throws -> Int {
  try FileManager.default.contentsOfDirectory(at: url, includingPropertiesForKeys: [.fileSizeKey])
    .reduce(0) { $0 + (try $1.resourceValues(forKeys: [.fileSizeKey]).fileSize ?? 0) }
}
