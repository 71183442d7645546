/// An open file. It is closed when the last reference is released.
package protocol File: AnyObject, Sendable {
  /// `pread`: 0 at the end of the file, and possibly fewer bytes than asked for.
  func read(into buffer: UnsafeMutableRawBufferPointer, at offset: UInt64) throws(SystemError)
    -> Int
  /// `pwrite`: possibly fewer bytes than asked for.
  func write(_ bytes: UnsafeRawBufferPointer, at offset: UInt64) throws(SystemError) -> Int
  /// `fallocate`: the range reads as zeros, and the file's size grows to its end.
  /// Throws `.notSupported` if the file system cannot.
  func preallocate(from offset: UInt64, count: UInt64) throws(SystemError)
  func truncate(to size: UInt64) throws(SystemError)
  /// `fdatasync`: content and size are durable once it returns. Never retried after a failure.
  func synchronize() throws(SystemError)
  func size() throws(SystemError) -> UInt64
  func identity() throws(SystemError) -> FileIdentity
  /// `flock` without waiting; false if another holder is in the way.
  func lock(_ kind: LockKind) throws(SystemError) -> Bool
  /// Releases the lock, also for the copies of the descriptor in forked processes, which would keep it after
  /// closing alone.
  func unlock()
  /// Locks the byte at the position for reading, in place of the one that this open file has locked before:
  /// `fcntl` with a lock of the open file. Any number of open files may lock one byte. Throws `.notSupported`
  /// if the system has no such locks.
  func lockByte(at position: UInt64) throws(SystemError)
  /// A byte of the range that another open file has locked, any of them; nil if none is.
  func lockedByte(in range: Range<UInt64>) throws(SystemError) -> UInt64?
}

extension File {
  package func lockByte(at position: UInt64) throws(SystemError) { throw .notSupported }

  package func lockedByte(in range: Range<UInt64>) throws(SystemError) -> UInt64? {
    throw .notSupported
  }
}

package enum LockKind: Hashable, Sendable { case shared, exclusive }
