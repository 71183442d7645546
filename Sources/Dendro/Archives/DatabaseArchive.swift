import DendroEngine
package import DendroStorage
import Synchronization

/// A copy of a database's checkpoints and log in a directory of its own, which is extended from time to time: of
/// every state from its beginning on, `Database.restore(at:to:)` makes a new database.
///
/// ```swift
/// let archive = try DatabaseArchive(of: "/var/lib/app/data", at: "/mnt/archive")
/// while !Task.isCancelled {
///   try await archive.extend()
///   try await Task.sleep(for: .seconds(1))
/// }
/// ```
///
/// It works beside the process that writes, or in it, and needs no open ``Database``. Its files are those of a
/// database: `Database.open(readOnly:)` opens it, and no opener writes it. Wherever extending ends, also by a
/// crash, the archive holds what it held before, or more.
///
/// Any thread may use it; calls wait for each other.
public final class DatabaseArchive: Sendable {
  /// What one call of `extend(sealedOnly:)` has added.
  public struct Extension: Hashable, Sendable {
    /// The last write in the archive.
    public let lastLSN: Database.LSN
    /// The segments of the log of which something was copied.
    public let segmentCount: Int
    /// The segments that got their end: nothing is added to them any more.
    public let sealedSegmentCount: Int
    /// The checkpoints that were copied.
    public let checkpointCount: Int
    /// The bytes that were written of segments and checkpoints.
    public let byteCount: UInt64
    /// The bytes that were written of their parity.
    public let parityByteCount: UInt64

    /// Whether there was nothing new.
    public var isEmpty: Bool { segmentCount == 0 && checkpointCount == 0 }

    init(_ step: LogArchive.Extension) {
      lastLSN = step.lastLSN.rawValue
      segmentCount = step.segments.count
      sealedSegmentCount = step.sealed.count
      checkpointCount = step.checkpoints.count
      byteCount = step.byteCount
      parityByteCount = step.parityByteCount
    }
  }

  /// Nil once it is closed.
  private let archive: Mutex<LogArchive?>

  /// Opens an archive, or begins one: the first `extend(sealedOnly:)` makes it readable. An archive whose beginning
  /// was cut short is begun again.
  ///
  /// - Parameters:
  ///   - directory: that of the database, absolute or relative to the working directory. An archive of an archive
  ///     works too.
  ///   - path: that of the archive; made if it is missing.
  ///   - parity: whether each file gets a second one beside it, a fifteenth of its size, from which
  ///     `dendro repair` restores any one damaged stretch of about a sixteenth of the file. Default: true.
  /// - Throws: ``DatabaseError``: ``DatabaseError/Code/notFound`` if there is no database;
  ///   ``DatabaseError/Code/invalidArgument`` if a database that is no archive is at `path`;
  ///   ``DatabaseError/Code/locked`` while the archive is open elsewhere.
  public convenience init(of directory: String, at path: String, parity: Bool = true) throws {
    try self.init(of: directory, at: path, parity: parity, environment: .system)
  }

  package init(
    of directory: String, at path: String, parity: Bool = true,
    environment: DendroStorage.Environment
  ) throws {
    let directory = try Database.absolute(directory)
    let path = try Database.absolute(path)
    do throws(StorageError) {
      let source = try DatabaseDirectory.open(
        directory, environment: environment, mode: .following)
      guard try !source.contents().isEmpty else { throw .notFound(path: directory) }
      archive = Mutex(try LogArchive(of: source, at: path, parity: parity))
    } catch {
      if case .io(_, let path, _, .exists) = error {
        throw DatabaseError(
          .invalidArgument, "InvalidArgumentError", "\(path) holds a database that is no archive",
          file: path, cause: error)
      }
      throw DatabaseError(error)
    }
  }

  deinit { close() }

  /// Copies what the archive does not have yet, as far as it is whole in the files; under
  /// ``Database/Durability/everyCommit`` that includes every acknowledged write.
  ///
  /// From the first call until `close()`, and from the opening of an archive that is there, the process that writes keeps
  /// the log that was not copied yet, up to 256 MiB beyond ``DatabaseOptions/history``;
  /// `Database.purgeHistory(waiting:)` waits for it.
  ///
  /// - Parameter sealedOnly: whether only those segments of the log are copied to which nothing is added any more;
  ///   not by the first call of a new archive. It costs one listing of the directory if there is none.
  /// - Throws: ``DatabaseError``: ``DatabaseError/Code/unavailable`` if the log does not continue from the
  ///   archive's end, since that part was removed, or the database was replaced: begin another archive.
  ///   ``DatabaseError/Code/corrupt`` if the log is damaged; the archive keeps what it has.
  ///   ``DatabaseError/Code/locked`` if files are removed at the moment: call again.
  ///   ``DatabaseError/Code/closed`` after `close()`.
  @discardableResult
  public func extend(sealedOnly: Bool = false) throws -> Extension {
    try archive.withLock { archive in
      guard let archive else { throw DatabaseError.closed }
      do throws(StorageError) {
        return Extension(try archive.extend(sealedOnly: sealedOnly))
      } catch {
        throw DatabaseError(error)
      }
    }
  }

  /// `extend(sealedOnly:)` on a thread of its own.
  @discardableResult
  public func extend(sealedOnly: Bool = false) async throws -> Extension {
    try await BackgroundThread.run(.archive) { () throws(any Error) in
      try self.extend(sealedOnly: sealedOnly)
    }
  }

  /// Frees the archive for others, and the log that is kept for it; waits for a call of `extend(sealedOnly:)`.
  /// Idempotent.
  public func close() {
    archive.withLock { archive in
      archive?.close()
      archive = nil
    }
  }
}
