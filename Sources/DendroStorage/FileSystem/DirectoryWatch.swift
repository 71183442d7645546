/// Reports whether the names in one directory have changed.
///
/// Single-owner; not for two threads at once.
package protocol DirectoryWatch: AnyObject {
  /// Whether since the last call a name in the directory was removed or given to another file, or the
  /// directory itself was moved or removed. True if that is unknown. Directories above it are not
  /// watched.
  ///
  /// - Complexity: one system call, which does not wait.
  func hasChanged() -> Bool
}
