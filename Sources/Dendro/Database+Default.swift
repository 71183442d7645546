import Foundation
import Synchronization

extension Database {
  private static let defaultInstance = Mutex<Database?>(nil)

  /// The default database: one for the process, in a directory that is named after the executable, in
  /// the user's data directory (`$XDG_DATA_HOME`, else `~/.local/share`; on Apple's systems
  /// `Application Support`). Opened by the first call.
  ///
  /// Always the same object, except after it was closed or could not be opened: then the next call
  /// tries again. If it cannot be opened, every operation on it gets the error.
  public static func database() -> Database {
    defaultInstance.withLock { instance in
      if let database = instance, !database.isClosed { return database }
      do {
        let path = try defaultDirectory()
        let database: Database = try open(at: path)
        instance = database
        return database
      } catch {
        return failed(error)
      }
    }
  }

  /// One that could not be opened: every operation on it gets the error.
  static func failed(_ error: any Error) -> Database {
    failed(error as? DatabaseError ?? cannotBeMade(error))
  }

  static func cannotBeMade(_ error: any Error) -> DatabaseError {
    DatabaseError(
      .inputOutput, "InputOutput",
      "the directory of the database cannot be made: \(error.localizedDescription)", cause: error)
  }

  /// Made with all that is above it.
  static func defaultDirectory() throws -> String {
    let files = FileManager.default
    let base: URL
    #if canImport(Darwin)
      base = try files.url(
        for: .applicationSupportDirectory, in: .userDomainMask, appropriateFor: nil, create: true)
    #else
      // The specification has relative paths ignored.
      let configured = ProcessInfo.processInfo.environment["XDG_DATA_HOME"] ?? ""
      base =
        configured.hasPrefix("/")
        ? URL(fileURLWithPath: configured, isDirectory: true)
        : files.homeDirectoryForCurrentUser.appendingPathComponent(
          ".local/share", isDirectory: true)
    #endif
    try files.createDirectory(at: base, withIntermediateDirectories: true)
    return base.appendingPathComponent(ProcessInfo.processInfo.processName).path
  }
}
