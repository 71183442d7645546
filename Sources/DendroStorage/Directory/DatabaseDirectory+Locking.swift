import DendroPlatform
import Synchronization

extension DatabaseDirectory {
  /// Whether no reader holds the directory at this moment.
  package func mayDelete() throws(StorageError) -> Bool {
    guard let lock = try lockOutReaders() else { return false }
    release(lock)
    return true
  }

  /// Runs `body`, which removes files, while no reader can open the directory.
  ///
  /// - Returns: false, and `body` did not run, if a reader holds the directory.
  package func withoutReaders(_ body: () throws(StorageError) -> Void) throws(StorageError) -> Bool
  {
    guard let lock = try lockOutReaders() else { return false }
    defer { release(lock) }
    try body()
    return true
  }

  /// Unlocks explicitly, since closing the descriptor is not enough: a child process has copies of it, until
  /// it executes its program or, as a fork, for as long as it lives. A fork itself does not unlock.
  func release(_ lock: any File) {
    if getpid() == processID { lock.unlock() }
  }

  /// The pid in the lock file, with spaces before it.
  private static let processIDByteCount = 11

  static func lockAsWriter(
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

  /// nil if there is no lock file, in a directory that no writer of ours has opened, or that
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

  func makeReadersLock() throws(StorageError) {
    let file = try fileSystem.open(at: readersLockPath, .openOrCreate)
    readersFile.withLock { $0 = file }
  }

  private func lockOutReaders() throws(StorageError) -> (any File)? {
    try checkWritable()
    let file = try fileSystem.open(at: readersLockPath, .openOrCreate)
    return try file.lock(.exclusive, path: readersLockPath) ? file : nil
  }
}
