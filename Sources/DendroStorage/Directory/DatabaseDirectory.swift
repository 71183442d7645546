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
    /// As `readWrite(create: true)`, for a database that does not exist before `finishBackup()`: also where
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

  /// What the directory holds.
  package struct Contents: Sendable {
    /// Ascending.
    package var segments: [SegmentName] = []
    /// Ascending.
    package var checkpoints: [LogSequenceNumber] = []
    /// Files with bytes that a recovery cut.
    package var tornFiles: [String] = []
    /// Names that are not the database's: reported, never touched.
    package var foreign: [String] = []
    /// Unfinished files of the database; a writer removes them when it opens the directory.
    package var temporaries: [String] = []
    /// Whether a backup into the directory is under way, or was cut short.
    package var isUnfinishedBackup = false
    /// Whether the directory is an archive, which no opener writes.
    package var isArchive = false

    package init() {}

    /// Whether there is no database here.
    package var isEmpty: Bool { segments.isEmpty && checkpoints.isEmpty }
  }

  package let path: String
  package let environment: Environment
  package let mode: Mode
  private let processID: Int32
  private let lockIdentity: FileIdentity?
  private let lock: Mutex<(any File)?>
  /// The file of the readers' lock, which a writer keeps open to find the readers' positions.
  let readersFile = Mutex<(any File)?>(nil)

  package var fileSystem: any FileSystem { environment.fileSystem }
  private var lockPath: String { path + "/" + FileName.lockName }
  var readersLockPath: String { path + "/" + FileName.readersLockName }

  /// Opens the directory.
  ///
  /// A writer creates what is missing, takes the lock, and removes the unfinished files that an
  /// earlier opener left.
  /// - `path`: absolute.
  /// - Throws: `.locked` while another opener writes; `.notFound` where there is no database and
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
      try makeReadersLock()
      let contents = try contents()
      // A backup may have begun before the lock was taken.
      try Self.checkFinished(contents, path)
      if contents.isArchive { throw .archive(path: path) }
      try remove(contents.temporaries)
    case .archive where Self.isArchive(path, files):
      let (file, identity) = try Self.lockAsWriter(path, processID, files)
      lock = Mutex(file)
      lockIdentity = identity
      try makeReadersLock()
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
      try synchronize()
      try makeReadersLock()
      try removeUnfinished()
      if mode == .archive {
        _ = try files.open(at: path + "/" + FileName.archiveName, .openOrCreate)
        try synchronize()
      }
    }
  }

  private static func isArchive(_ path: String, _ files: any FileSystem) -> Bool {
    guard let found = try? contents(of: path, files) else { return false }
    return found.isArchive && !found.isUnfinishedBackup
  }

  private static func checkFinished(_ contents: Contents, _ path: String) throws(StorageError) {
    if contents.isUnfinishedBackup { throw .unfinishedBackup(path: path) }
  }

  /// Creates the file that marks an unfinished backup: before anything else, so that a directory with a part
  /// of a backup is never without it.
  ///
  /// - Returns: false where it is there already.
  /// - Throws: `.io` with `.exists` where a database is there.
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
      contents.temporaries + contents.segments.map(\.fileName)
        + contents.checkpoints.map { FileName.checkpointName($0) }
        + (contents.isArchive ? [FileName.archiveName] : []))
  }

  /// Whether a backup into the directory at `path` is under way, or was cut short; false where there is none.
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

  /// The names in the directory, by kind.
  ///
  /// - Complexity: one listing; no file is opened.
  package func contents() throws(StorageError) -> Contents {
    try Self.contents(of: path, fileSystem)
  }

  package func path(of segment: SegmentName) -> String { path + "/" + segment.fileName }

  package func path(ofCheckpoint lsn: LogSequenceNumber) -> String {
    path + "/" + FileName.checkpointName(lsn)
  }

  package func byteCount(of segment: SegmentName) throws(StorageError) -> UInt64 {
    let path = path(of: segment)
    return try fileSystem.open(at: path, .read).size(path: path)
  }

  package func byteCount(ofCheckpoint lsn: LogSequenceNumber) throws(StorageError) -> UInt64 {
    let path = path(ofCheckpoint: lsn)
    return try fileSystem.open(at: path, .read).size(path: path)
  }

  /// Checks that the directory at the path is still the one that was locked, and by this process. One system
  /// call besides `getpid`.
  ///
  /// - Throws: `.ownershipLost` after a `fork`, after `close()`, and where the lock file or a
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

  /// Whether no reader holds the directory at this moment.
  package func mayDelete() throws(StorageError) -> Bool {
    guard let lock = try lockOutReaders() else { return false }
    release(lock)
    return true
  }

  /// Runs `body`, which removes files, while no reader can open the directory.
  ///
  /// - Returns: false, and `body` did not run, where a reader holds the directory.
  package func withoutReaders(_ body: () throws(StorageError) -> Void) throws(StorageError) -> Bool
  {
    guard let lock = try lockOutReaders() else { return false }
    defer { release(lock) }
    try body()
    return true
  }

  /// Removes a segment that nothing needs any more; inside `withoutReaders`. Idempotent.
  package func removeSegment(_ segment: SegmentName) throws(StorageError) {
    try checkWritable()
    try fileSystem.remove(at: path(of: segment))
  }

  /// Removes a checkpoint that nothing needs any more; inside `withoutReaders`. Idempotent.
  package func removeCheckpoint(_ lsn: LogSequenceNumber) throws(StorageError) {
    try checkWritable()
    try fileSystem.remove(at: path(ofCheckpoint: lsn))
  }

  /// Removes a file of bytes that a recovery cut, as `Contents.tornFiles` names it.
  /// Idempotent.
  package func removeTornFile(_ name: String) throws(StorageError) {
    try checkWritable()
    guard case .torn = FileName(name) else { return }
    try fileSystem.remove(at: path + "/" + name)
  }

  /// Removes the oldest files of bytes that recoveries cut: those of segments before `segment`, and all but
  /// the `count` newest.
  package func pruneTornFiles(
    before segment: SegmentName? = nil, keeping count: Int = DatabaseDirectory.tornFileCountMax
  ) throws(StorageError) {
    let files = try contents().tornFiles.compactMap {
      name -> (name: String, key: [UInt64], segment: SegmentName)? in
      guard case .torn(let of, let offset, let copy) = FileName(name) else { return nil }
      return (name, [of.firstLSN.rawValue, offset, copy], of)
    }.sorted { $0.key.lexicographicallyPrecedes($1.key) }
    for (index, file) in files.enumerated() {
      let isOld = segment.map { file.segment < $0 } ?? false
      if isOld || index < files.count - count { try removeTornFile(file.name) }
    }
  }

  /// How many files of bytes that recoveries cut are kept.
  package static let tornFileCountMax = 16

  /// Makes the removals durable. Not needed for safety: what comes back is removed again.
  package func synchronize() throws(StorageError) {
    try fileSystem.synchronizeDirectory(at: path)
  }

  /// Releases the locks. Later writes are refused. Idempotent.
  package func close() {
    let held = lock.withLock { $0.take() }
    if let held { release(held) }
  }

  /// Unlocks explicitly, since closing the descriptor is not enough: a child process has copies of it, until
  /// it executes its program or, as a fork, for as long as it lives. A fork itself does not unlock.
  func release(_ lock: any File) {
    if getpid() == processID { lock.unlock() }
  }

  // MARK: - Opening

  /// The pid in the lock file, with spaces before it.
  private static let processIDByteCount = 11

  private static func contents(of path: String, _ files: any FileSystem) throws(StorageError)
    -> Contents
  {
    let names: [String]
    do {
      names = try files.names(in: path)
    } catch {
      if case .io(_, _, _, .noSuchFile) = error { throw .notFound(path: path) }
      throw error
    }
    var contents = Contents()
    for name in names {
      switch FileName(name) {
      case .segment(let segment): contents.segments.append(segment)
      case .checkpoint(let lsn): contents.checkpoints.append(lsn)
      case .torn: contents.tornFiles.append(name)
      case .temporary: contents.temporaries.append(name)
      case .unfinishedBackup: contents.isUnfinishedBackup = true
      case .archive: contents.isArchive = true
      case .lock, .readersLock: break
      case nil: contents.foreign.append(name)
      }
    }
    contents.segments.sort()
    contents.checkpoints.sort()
    contents.tornFiles.sort()
    contents.foreign.sort()
    contents.temporaries.sort()
    return contents
  }

  private static func lockAsWriter(
    _ directory: String, _ processID: Int32, _ files: any FileSystem
  ) throws(StorageError) -> (any File, FileIdentity) {
    let path = directory + "/" + FileName.lockName
    // Between opening and locking, an earlier holder's file may have been replaced: its lock would
    // exclude no other opener. The number of attempts is limited, in case it is replaced again and again.
    for _ in 0..<16 {
      let file = try files.open(at: path, .openOrCreate)
      guard try file.lock(.exclusive, path: path) else {
        throw .locked(path: directory, pid: try readProcessID(file, path))
      }
      let identity = try file.identity(path: path)
      guard (try? files.identity(at: path)) == identity else { continue }
      // One write of constant length: no truncation, and nothing of an older pid is left.
      let digits = String(processID)
      var line = ByteWriter()
      for _ in digits.utf8.count..<processIDByteCount { line.uint8(UInt8(ascii: " ")) }
      for digit in digits.utf8 { line.uint8(digit) }
      line.uint8(UInt8(ascii: "\n"))
      do {
        try file.writeAll(line.bytes, at: 0, path: path)
      } catch {
        // The lock is held without the pid: a full disk must not prevent opening.
        if !error.isOutOfSpace { throw error }
      }
      return (file, identity)
    }
    throw .locked(path: directory, pid: 0)
  }

  private static func readProcessID(_ file: any File, _ path: String) throws(StorageError) -> Int32
  {
    var buffer = RawBuffer()
    buffer.reserve(processIDByteCount)
    let line = UnsafeMutableRawBufferPointer(start: buffer.base, count: processIDByteCount)
    let count = try file.readFully(into: line, at: 0, path: path)
    let digits = line[..<count].filter { $0 >= 0x30 && $0 <= 0x39 }
    return Int32(String(decoding: digits, as: UTF8.self)) ?? 0
  }

  /// nil where there is no lock file, in a directory that no writer of ours has opened, or that
  /// was copied without it: nothing is written, so the reader has no lock.
  static func lockAsReader(_ path: String, _ files: any FileSystem) throws(StorageError)
    -> (any File)?
  {
    let file: any File
    do {
      file = try files.open(at: path, .read)
    } catch {
      if case .io(_, _, _, .noSuchFile) = error { return nil }
      throw error
    }
    // A writer locks readers out only while it removes a few files.
    for _ in 0..<500 {
      if try file.lock(.shared, path: path) { return file }
      usleep(2000)
    }
    throw .locked(path: path, pid: 0)
  }

  private func makeReadersLock() throws(StorageError) {
    let file = try fileSystem.open(at: readersLockPath, .openOrCreate)
    readersFile.withLock { $0 = file }
  }

  private func remove(_ names: [String]) throws(StorageError) {
    for name in names { try fileSystem.remove(at: path + "/" + name) }
  }

  private func lockOutReaders() throws(StorageError) -> (any File)? {
    try checkWritable()
    let file = try fileSystem.open(at: readersLockPath, .openOrCreate)
    return try file.lock(.exclusive, path: readersLockPath) ? file : nil
  }

  func checkWritable() throws(StorageError) {
    if mode.isReadOnly {
      throw .io(operation: "write", path: path, offset: nil, error: .readOnly)
    }
    try checkOwnership()
  }
}
