// Declares the time of the system's `stat`, too.
import CDendroCrypto
import DendroPlatform

/// What shows that a file has changed.
struct FileVersion: Hashable, Sendable {
  private let inode: UInt64
  let byteCount: Int64
  private let modified: [Int]
  /// When anything of it has changed.
  private let changed: [Int]
  /// Its mode, and whose it is: the time may be that of the system's last tick.
  private let rights: [UInt32]

  /// - Returns: nil if there is no such file.
  init?(of path: String) {
    var status = stat()
    guard stat(path, &status) == 0 else { return nil }
    inode = UInt64(status.st_ino)
    byteCount = Int64(status.st_size)
    modified = [status.st_mtim.tv_sec, status.st_mtim.tv_nsec]
    changed = [status.st_ctim.tv_sec, status.st_ctim.tv_nsec]
    rights = [status.st_mode, status.st_uid, status.st_gid]
  }
}
