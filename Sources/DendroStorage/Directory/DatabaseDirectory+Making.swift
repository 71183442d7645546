extension DatabaseDirectory {
  /// Makes a database in a directory that holds none.
  ///
  /// If that fails, what was made is removed, and only then the lock is released: another opener's files never are.
  ///
  /// - Parameters:
  ///   - path: absolute; of a directory that does not exist yet, is empty, or holds an unfinished backup.
  ///   - body: writes the files, and calls `finishBackup()`.
  ///   - environment: the file system and the clock.
  /// - Throws: as `open` with `.backup`, and what `body` throws.
  package static func make<R>(
    at path: String, environment: Environment,
    _ body: (DatabaseDirectory) throws(StorageError) -> R
  ) throws(StorageError) -> R {
    var footprint = try Footprint(of: path, environment.fileSystem)
    let directory: DatabaseDirectory
    do throws(StorageError) {
      directory = try open(path, environment: environment, mode: .backup)
    } catch {
      switch error {
      // Another opener works there, or has made a database.
      case .locked, .io("backup", _, _, .exists): break
      default: footprint.remove()
      }
      throw error
    }
    defer { directory.close() }
    do throws(StorageError) {
      try footprint.begin()
      return try body(directory)
    } catch {
      footprint.remove()
      throw error
    }
  }
}
