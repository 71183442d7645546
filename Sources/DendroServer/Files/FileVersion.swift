// Declares the time of the system's `stat`, too.
import CDendroCrypto
import DendroPlatform

/// What shows that a file has changed.
struct FileVersion: Hashable, Sendable {
  private let inode: UInt64
  let byteCount: Int64
  private let modified: [Int]
  /// When anything of it has changed, its rights too.
  private let changed: [Int]

  /// - Returns: nil if there is no such file.
  init?(of path: String) {
    var status = stat()
    guard stat(path, &status) == 0 else { return nil }
    inode = UInt64(status.st_ino)
    byteCount = Int64(status.st_size)
    modified = [status.st_mtim.tv_sec, status.st_mtim.tv_nsec]
    changed = [status.st_ctim.tv_sec, status.st_ctim.tv_nsec]
  }
}
