import DendroPlatform
import Synchronization

/// The system's disk, each requirement one call.
package final class DiskFileSystem: FileSystem {
  package init() {}

  package func createDirectory(_ path: String) throws(SystemError) {
    try check(mkdir(path, 0o700))
  }

  package func list(_ directory: String) throws(SystemError) -> [String] {
    guard let stream = opendir(directory) else { throw SystemError(errno) }
    defer { closedir(stream) }
    var names: [String] = []
    errno = 0
    while let entry = readdir(stream) {
      // `d_name` is imported as a tuple; its bytes stand at a fixed offset in the entry.
      let offset = MemoryLayout<dirent>.offset(of: \.d_name)!
      let bytes = UnsafeRawPointer(entry).advanced(by: offset).assumingMemoryBound(to: CChar.self)
      let name = String(cString: bytes)
      if name != "." && name != ".." { names.append(name) }
      errno = 0
    }
    if errno != 0 { throw SystemError(errno) }
    return names
  }

  package func open(_ path: String, _ mode: OpenMode) throws(SystemError) -> any File {
    let flags: Int32 =
      switch mode {
      case .read: O_RDONLY
      case .readWrite: O_RDWR
      case .create: O_RDWR | O_CREAT | O_EXCL
      case .openOrCreate: O_RDWR | O_CREAT
      }
    return DiskFile(try descriptor(path, flags))
  }

  package func rename(_ from: String, to: String) throws(SystemError) {
    try check(DendroPlatform.rename(from, to))
  }

  package func remove(_ path: String) throws(SystemError) {
    if unlink(path) == 0 { return }
    // For a directory Linux returns EISDIR, POSIX specifies EPERM.
    guard errno == EISDIR || errno == EPERM else { throw SystemError(errno) }
    try check(rmdir(path))
  }

  package func openDirectory(_ path: String) throws(SystemError) -> any DirectoryHandle {
    DiskDirectory(try descriptor(path, O_RDONLY | O_DIRECTORY))
  }

  package func identity(_ path: String) throws(SystemError) -> FileIdentity {
    var status = stat()
    try check(stat(path, &status))
    return FileIdentity(status)
  }

  package func watch(_ directory: String) -> (any DirectoryWatch)? {
    #if os(Linux)
      InotifyWatch(directory)
    #else
      nil
    #endif
  }

  private func descriptor(_ path: String, _ flags: Int32) throws(SystemError) -> Int32 {
    // A NUL would end the path early in C and name another file.
    if path.utf8.contains(0) { throw SystemError(EINVAL) }
    // O_NONBLOCK: opening a pipe with one of the database's names must not wait. It has no effect on files.
    let flags = flags | O_CLOEXEC | O_NONBLOCK | O_NOCTTY
    let mode: mode_t = 0o600
    let descriptor = DendroPlatform.open(path, flags, mode)
    try check(descriptor)
    // A process that was started with its standard streams closed would get their numbers for our files,
    // and whatever is printed to them would land in the log.
    guard descriptor <= STDERR_FILENO else {
      return descriptor
    }
    let higher = fcntl(descriptor, F_DUPFD_CLOEXEC, STDERR_FILENO + 1)
    let error = SystemError(errno)
    _ = close(descriptor)
    guard higher >= 0 else { throw error }
    return higher
  }
}

/// The descriptor of a directory, which never changes, so that any thread may use it.
private final class DiskDirectory: DirectoryHandle {
  private let descriptor: Int32

  init(_ descriptor: Int32) { self.descriptor = descriptor }
  deinit { close(descriptor) }

  func synchronize() throws(SystemError) { try check(fsync(descriptor)) }
}

/// A descriptor, closed with its last reference. The descriptor never changes, so any thread may use it.
private final class DiskFile: File {
  private let descriptor: Int32
  /// The byte that is locked.
  private let lockedByte = Mutex<UInt64?>(nil)

  init(_ descriptor: Int32) { self.descriptor = descriptor }
  deinit { close(descriptor) }

  func read(into buffer: UnsafeMutableRawBufferPointer, at offset: UInt64) throws(SystemError)
    -> Int
  {
    let count = pread(descriptor, buffer.baseAddress, buffer.count, try position(offset))
    if count < 0 { throw SystemError(errno) }
    return count
  }

  func write(_ bytes: UnsafeRawBufferPointer, at offset: UInt64) throws(SystemError) -> Int {
    let count = pwrite(descriptor, bytes.baseAddress, bytes.count, try position(offset))
    if count < 0 { throw SystemError(errno) }
    return count
  }

  func preallocate(from offset: UInt64, count: UInt64) throws(SystemError) {
    guard let fallocate else { throw .notSupported }
    try check(fallocate(descriptor, 0, try position(offset), try position(count)))
  }

  func truncate(to size: UInt64) throws(SystemError) {
    try check(ftruncate(descriptor, try position(size)))
  }

  func synchronize() throws(SystemError) {
    #if canImport(Darwin)
      // fsync on Darwin does not empty the drive's cache (its fsync(2)).
      try check(fcntl(descriptor, F_FULLFSYNC))
    #else
      try check(fdatasync(descriptor))
    #endif
  }

  func size() throws(SystemError) -> UInt64 {
    UInt64(clamping: try status().st_size)
  }

  func identity() throws(SystemError) -> FileIdentity { FileIdentity(try status()) }

  func lock(_ kind: LockKind) throws(SystemError) -> Bool {
    let result = flock(descriptor, (kind == .exclusive ? LOCK_EX : LOCK_SH) | LOCK_NB)
    if result < 0, errno == EWOULDBLOCK { return false }
    try check(result)
    return true
  }

  func unlock() {
    _ = flock(descriptor, LOCK_UN)
    lockedByte.withLock { last in
      if let byte = last { try? changeLock(of: byte, to: F_UNLCK) }
      last = nil
    }
  }

  func lockByte(at position: UInt64) throws(SystemError) {
    // Names of files may say any number.
    guard position < UInt64(Int64.max) else { throw .notSupported }
    try lockedByte.withLock { (last) throws(SystemError) in
      if last == position { return }
      try changeLock(of: position, to: F_RDLCK)
      if let last { try changeLock(of: last, to: F_UNLCK) }
      last = position
    }
  }

  private func changeLock(of byte: UInt64, to type: Int) throws(SystemError) {
    try changeLock(of: byte, to: Int32(type))
  }

  private func changeLock(of byte: UInt64, to type: Int32) throws(SystemError) {
    var lock = try ByteLock.make(type, byte..<byte &+ 1)
    try check(fcntl(descriptor, ByteLock.set, &lock))
  }

  func lockedByte(in range: Range<UInt64>) throws(SystemError) -> UInt64? {
    guard !range.isEmpty else { return nil }
    // A lock for writing is what every other lock is in the way of.
    var lock = try ByteLock.make(Int32(F_WRLCK), range)
    try check(fcntl(descriptor, ByteLock.get, &lock))
    return lock.l_type == Int16(F_UNLCK) ? nil : UInt64(clamping: lock.l_start)
  }

  private func status() throws(SystemError) -> stat {
    var status = stat()
    try check(fstat(descriptor, &status))
    return status
  }

  private func position(_ offset: UInt64) throws(SystemError) -> off_t {
    guard let position = off_t(exactly: offset) else { throw SystemError(EFBIG) }
    return position
  }
}

/// Locks of bytes that belong to the open file, and not to the process: fcntl(2), «Open file description locks».
private enum ByteLock {
  // Linux declares the numbers behind a macro that Swift does not set.
  #if canImport(Darwin)
    static let set: Int32 = 90
    static let get: Int32 = 92
  #else
    static let set: Int32 = 37
    static let get: Int32 = 36
  #endif

  static func make(_ type: Int32, _ range: Range<UInt64>) throws(SystemError) -> flock {
    guard let start = off_t(exactly: range.lowerBound), let count = off_t(exactly: range.count)
    else { throw .notSupported }
    var lock = flock()
    lock.l_type = Int16(type)
    lock.l_whence = Int16(SEEK_SET)
    lock.l_start = start
    lock.l_len = count
    return lock
  }
}

private func check(_ result: Int32) throws(SystemError) {
  if result < 0 { throw SystemError(errno) }
}

extension FileIdentity {
  fileprivate init(_ status: stat) {
    self.init(
      device: UInt64(truncatingIfNeeded: status.st_dev),
      inode: UInt64(truncatingIfNeeded: status.st_ino))
  }
}

/// Linux has `fallocate`; its declaration is hidden from Swift behind a macro, and `posix_fallocate`
/// writes to every block if the file system cannot, which is what we do not want.
private let fallocate: (@convention(c) (Int32, Int32, off_t, off_t) -> Int32)? = {
  #if os(Linux)
    guard let symbol = dlsym(nil, "fallocate") else { return nil }
    return unsafeBitCast(symbol, to: (@convention(c) (Int32, Int32, off_t, off_t) -> Int32).self)
  #else
    return nil
  #endif
}()
