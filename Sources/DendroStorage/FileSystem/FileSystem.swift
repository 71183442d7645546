/// The interface to the disk: nothing else in the engine calls it.
///
/// Every requirement is one system call, which may fail with any `errno`, be interrupted, and do less than
/// requested, so that a simulated disk can inject each of these. The loops that make complete operations of
/// them are in the extensions (`FileSystem+Operations.swift`, `File+Operations.swift`). Paths are absolute.
/// Any thread may call; two threads never write one file at once.
package protocol FileSystem: AnyObject, Sendable {
  /// `mkdir` with mode 0700. Throws `.exists` if something is there already.
  func createDirectory(_ path: String) throws(SystemError)
  /// Names of the entries of a directory without `.` and `..`, in no order.
  func list(_ directory: String) throws(SystemError) -> [String]
  /// `open` with `O_CLOEXEC`; a file that is created gets mode 0600.
  func open(_ path: String, _ mode: OpenMode) throws(SystemError) -> any File
  /// Replaces `to` if it exists.
  func rename(_ from: String, to: String) throws(SystemError)
  /// A file, or a directory that is empty.
  func remove(_ path: String) throws(SystemError)
  /// `open` of a directory, to synchronize it. Takes a descriptor, as every open file does.
  func openDirectory(_ path: String) throws(SystemError) -> any DirectoryHandle
  /// Device and inode of what the path names now, following links.
  func identity(_ path: String) throws(SystemError) -> FileIdentity
  /// Watches the names in a directory from now on. Nil if the system cannot report every change.
  func watch(_ directory: String) -> (any DirectoryWatch)?
}

package enum OpenMode: Hashable, Sendable {
  /// Existing, for reading.
  case read
  /// Existing, for reading and writing.
  case readWrite
  /// New: throws `.exists` if something is there already.
  case create
  /// Existing or new, for reading and writing.
  case openOrCreate
}

/// Which file a path or a handle stands for.
package struct FileIdentity: Hashable, Sendable {
  package let device: UInt64
  package let inode: UInt64

  package init(device: UInt64, inode: UInt64) {
    self.device = device
    self.inode = inode
  }
}
