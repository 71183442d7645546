import DendroEngine
public import Foundation

extension Database {
  /// Writes a copy, as of one moment, into a new directory, which opens like any other database.
  ///
  /// While it is under way, and if the process is killed before its end, the directory does not open: that throws
  /// ``DatabaseError/Code/notFound``. The next backup into it starts over.
  ///
  /// - Parameters:
  ///   - path: absolute or relative to the working directory; must not hold a database. It is made if it is
  ///     missing.
  ///   - parity: whether each file gets a second one beside it, a fifteenth of its size, from which
  ///     `dendro repair` restores any one damaged stretch of about a sixteenth of the file. Default: false.
  /// - Throws: ``DatabaseError`` if the disk refuses, or there are no files to copy; what was made by
  ///   then is removed again.
  public func backup(to path: String, parity: Bool = false) throws {
    let engine = try keeping()
    let path = try Self.absolute(path)
    try Self.translating { () throws(EngineError) in try engine.backup(to: path, parity: parity) }
  }

  /// `backup(to:parity:)` on a thread of its own.
  public func backup(to path: String, parity: Bool = false) async throws {
    let engine = try keeping()
    let path = try Self.absolute(path)
    do throws(EngineError) {
      try await BackgroundThread.run(.backup) { () throws(EngineError) in
        try engine.backup(to: path, parity: parity)
      }
    } catch {
      throw DatabaseError(error)
    }
  }

  /// `backup(to:parity:)` to a file URL.
  ///
  /// - Throws: as `backup(to:parity:)` does; ``DatabaseError/Code/invalidArgument`` for any other URL.
  public func backup(to url: URL, parity: Bool = false) throws {
    try backup(to: Self.path(of: url), parity: parity)
  }

  /// `backup(to:parity:)` to a file URL, on a thread of its own.
  ///
  /// - Throws: as `backup(to:parity:)` does; ``DatabaseError/Code/invalidArgument`` for any other URL.
  public func backup(to url: URL, parity: Bool = false) async throws {
    try await backup(to: Self.path(of: url), parity: parity)
  }
}
