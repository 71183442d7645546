/// An open directory. It is closed when the last reference is released.
package protocol DirectoryHandle: AnyObject, Sendable {
  /// `fsync`: makes the creations, renames and removals in the directory durable.
  func synchronize() throws(SystemError)
}
