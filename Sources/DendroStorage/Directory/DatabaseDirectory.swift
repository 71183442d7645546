import DendroPlatform
import Synchronization

/// The directory of a database: its locks, the files in it, and their removal.
///
/// One opener writes, for the whole of its use: it holds an exclusive `flock` on `dendro.lock`,
/// which belongs to the open file and not to the process, so that a second opener in the same
/// process, also by a symlink, is refused like any other. Readers hold a shared one on
/// `readers.lock`, which keeps the writer from removing files below them. Any thread may call.
package final class DatabaseDirectory: Sendable {
  package enum Mode: Hashable, Sendable {
    /// The one opener that writes. `create`: makes the directory, and accepts an empty one.
    case readWrite(create: Bool)
    /// As `readWrite(create: true)`, for a database that does not exist before `finishBackup()`: also if
    /// an earlier backup was cut short.
    case backup
    /// A copy of checkpoints and log that `LogArchive` extends; begun as `backup` is.
    case archive
    /// Beside a writer or alone; nothing in the directory is changed.
    case readOnly
    /// As `readOnly`, for as long as a writer works: only a lease keeps the writer from removing files, and a
    /// published position those behind it, up to a limit.
    case following

    package var isReadOnly: Bool { self == .readOnly || self == .following }
  }

  package let path: String
  package let environment: Environment
  package let mode: Mode
  let processID: Int32
  private let lockIdentity: FileIdentity?
  private let lock: Mutex<(any File)?>
  /// The file of the readers' lock, which a writer keeps open to find the readers' positions.
  let readersFile = Mutex<(any File)?>(nil)
  /// The directory itself, which a writer keeps open: if no descriptor were left behind a rename, it would be
  /// uncertain whether the new name is durable.
  private let handle = Mutex<(any DirectoryHandle)?>(nil)
  /// The database that the files belong to, once that is known.
  let knownID = Mutex<DatabaseID?>(nil)

  package var fileSystem: any FileSystem { environment.fileSystem }
  private var lockPath: String { path + "/" + FileName.lockName }
  var readersLockPath: String { path + "/" + FileName.readersLockName }

  /// Opens the directory.
  ///
  /// A writer creates what is missing, takes the lock, and removes the unfinished files that an
  /// earlier opener left.
  /// - `path`: absolute.
  /// - Throws: `.locked` while another opener writes; `.notFound` if there is no database and
  ///   none may be made; `.io`.
  package static func open(
    _ path: String, environment: Environment, mode: Mode
  ) throws(StorageError) -> DatabaseDirectory {
    var path = path
    while path.utf8.count > 1 && path.utf8.last == UInt8(ascii: "/") { path.removeLast() }
    return try DatabaseDirectory(path: path, environment: environment, mode: mode)
  }

  private init(path: String, environment: Environment, mode: Mode) throws(StorageError) {
    self.path = path
    self.environment = environment
    self.mode = mode
    processID = getpid()
    let files = environment.fileSystem
    let isArchive = mode == .archive ? try Self.isArchive(path, files) : false
    switch mode {
    case .readOnly:
      try Self.checkFinished(try Self.contents(of: path, files), path)
      lock = Mutex(try Self.lockAsReader(path + "/" + FileName.readersLockName, files))
      lockIdentity = nil
    case .following:
      try Self.checkFinished(try Self.contents(of: path, files), path)
      lock = Mutex(nil)
      lockIdentity = nil
    case .readWrite(let create):
      if create { try files.createDirectories(to: path) }
      let found = try Self.contents(of: path, files)
      try Self.checkFinished(found, path)
      if found.isArchive { throw .archive(path: path) }
      if found.isEmpty {
        guard create else { throw .notFound(path: path) }
        try files.synchronizeWay(to: path)
      }
      let (file, identity) = try Self.lockAsWriter(path, processID, files)
      lock = Mutex(file)
      lockIdentity = identity
      try openForWriting()
      let contents = try contents()
      // A backup may have begun before the lock was taken.
      try Self.checkFinished(contents, path)
      if contents.isArchive { throw .archive(path: path) }
      try remove(contents.temporaries)
    case .archive where isArchive:
      let (file, identity) = try Self.lockAsWriter(path, processID, files)
      lock = Mutex(file)
      lockIdentity = identity
      try openForWriting()
      try remove(contents().temporaries)
    case .backup, .archive:
      try files.createDirectories(to: path)
      let isOurs = try Self.markUnfinished(path, files)
      let locked: (any File, FileIdentity)
      do throws(StorageError) {
        locked = try Self.lockAsWriter(path, processID, files)
      } catch {
        if isOurs { try? files.remove(at: path + "/" + FileName.unfinishedBackupName) }
        throw error
      }
      lock = Mutex(locked.0)
      lockIdentity = locked.1
      // Before the lock was taken, a database may have begun, or another backup may have been completed.
      let found = try Self.contents(of: path, files)
      guard isOurs ? found.isEmpty : found.isUnfinishedBackup else {
        if isOurs { try files.remove(at: path + "/" + FileName.unfinishedBackupName) }
        throw .io(operation: "backup", path: path, offset: nil, error: .exists)
      }
      try files.synchronizeWay(to: path)
      try openForWriting()
      try synchronize()
      try removeUnfinished()
      if mode == .archive {
        _ = try files.open(at: path + "/" + FileName.archiveName, .openOrCreate)
        try synchronize()
      }
    }
  }

  /// Whether a directory is there that is an archive.
  private static func isArchive(
    _ path: String, _ files: any FileSystem
  ) throws(StorageError) -> Bool {
    do {
      let found = try contents(of: path, files)
      return found.isArchive && !found.isUnfinishedBackup
    } catch {
      if case .notFound = error { return false }
      throw error
    }
  }

  /// Opens what a writer keeps open.
  private func openForWriting() throws(StorageError) {
    let opened = try fileSystem.openDirectory(at: path)
    handle.withLock { $0 = opened }
    try makeReadersLock()
  }

  private static func checkFinished(_ contents: Contents, _ path: String) throws(StorageError) {
    if contents.isUnfinishedBackup { throw .unfinishedBackup(path: path) }
  }

  /// Creates the file that marks an unfinished backup: before anything else, so that a directory with a part
  /// of a backup is never without it.
  ///
  /// - Returns: false if it is there already.
  /// - Throws: `.io` with `.exists` if a database is there.
  private static func markUnfinished(_ path: String, _ files: any FileSystem) throws(StorageError)
    -> Bool
  {
    let contents = try contents(of: path, files)
    if contents.isUnfinishedBackup { return false }
    guard contents.isEmpty else {
      throw .io(operation: "backup", path: path, offset: nil, error: .exists)
    }
    _ = try files.open(at: path + "/" + FileName.unfinishedBackupName, .openOrCreate)
    return true
  }

  /// Removes the files of an unfinished backup.
  private func removeUnfinished() throws(StorageError) {
    let contents = try contents()
    try remove(
      contents.temporaries + contents.parityFiles + contents.fileNames
        + (contents.isArchive ? [FileName.archiveName] : []))
  }

  /// Whether a backup into the directory at `path` is under way, or was cut short; false if there is none.
  package static func isUnfinishedBackup(
    _ path: String, _ environment: Environment = .system
  ) -> Bool {
    (try? contents(of: path, environment.fileSystem).isUnfinishedBackup) ?? false
  }

  /// Makes a finished backup a database, or an archive readable. The caller has made all of its files durable.
  package func finishBackup() throws(StorageError) {
    try checkWritable()
    try fileSystem.remove(at: path + "/" + FileName.unfinishedBackupName)
    try synchronize()
  }

  package func path(of segment: SegmentName) -> String { path + "/" + segment.fileName }

  package func path(ofCheckpoint lsn: LogSequenceNumber) -> String {
    path + "/" + FileName.checkpointName(lsn)
  }

  package func byteCount(of segment: SegmentName) throws(StorageError) -> UInt64 {
    try byteCount(ofFile: segment.fileName)
  }

  package func byteCount(ofCheckpoint lsn: LogSequenceNumber) throws(StorageError) -> UInt64 {
    try byteCount(ofFile: FileName.checkpointName(lsn))
  }

  package func byteCount(ofFile name: String) throws(StorageError) -> UInt64 {
    let path = path + "/" + name
    return try fileSystem.open(at: path, .read).size(path: path)
  }

  /// Checks that the directory at the path is still the one that was locked, and by this process. One system
  /// call besides `getpid`.
  ///
  /// - Throws: `.ownershipLost` after a `fork`, after `close()`, and if the lock file or a
  ///   directory above it was moved, removed or replaced.
  package func checkOwnership() throws(StorageError) {
    try checkHolder()
    guard let lockIdentity else { return }
    let found: FileIdentity
    do {
      found = try fileSystem.identity(at: lockPath)
    } catch {
      if case .io(_, _, _, .noSuchFile) = error {
        throw .ownershipLost(path: path, reason: "the lock file was moved or removed")
      }
      throw error
    }
    if found != lockIdentity {
      throw .ownershipLost(path: path, reason: "another directory or lock file stands there now")
    }
  }

  /// Checks that this process has locked the directory and not closed it, without a call on a file.
  ///
  /// - Throws: `.ownershipLost` after a `fork` and after `close()`.
  func checkHolder() throws(StorageError) {
    if getpid() != processID {
      // LCOV_EXCL_START: runs in forked processes, which end without writing their counts
      throw .ownershipLost(path: path, reason: "this process is a fork of the one that opened it")
      // LCOV_EXCL_STOP
    }
    if lockIdentity != nil, lock.withLock({ $0 == nil }) {
      throw .ownershipLost(path: path, reason: "it was closed")
    }
  }

  /// Makes the names in the directory durable: what was created, renamed and removed. For a writer.
  package func synchronize() throws(StorageError) {
    guard let handle = handle.withLock({ $0 }) else {
      throw .ownershipLost(path: path, reason: "it was closed")
    }
    try handle.synchronize(path: path)
  }

  /// Releases the locks. Later writes are refused. Idempotent.
  package func close() {
    let held = lock.withLock { $0.take() }
    if let held { release(held) }
    handle.withLock { $0 = nil }
  }

  func checkWritable() throws(StorageError) {
    if mode.isReadOnly {
      throw .io(operation: "write", path: path, offset: nil, error: .readOnly)
    }
    try checkOwnership()
  }
}
