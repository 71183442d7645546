public import Dendro
import DendroEngine

extension Database {
  /// Opens the database in a directory of a simulated disk, and makes one if there is none.
  ///
  /// It is the same database as that of `Database.open(at:options:)`, with its threads, its recovery and
  /// its files, but that the disk, the clock and the randomness are those of `disk`. An app that is to be
  /// tested so takes its database from outside.
  ///
  /// - Parameters:
  ///   - path: absolute, or relative to the working directory; made with what is missing above it.
  ///   - disk: where its files are.
  ///   - options: how the database behaves.
  /// - Throws: `DatabaseError`, as from a disk of the real world.
  /// - Complexity: as for `Database.open(at:options:)`. Waits for no device.
  public static func open(
    at path: String, on disk: SimulatedDisk, options: DatabaseOptions = DatabaseOptions()
  ) throws -> Database {
    try open(
      at: path, options: options, environment: disk.environment,
      mode: options.createsMissing ? .readWrite : .readWriteExisting)
  }
}
