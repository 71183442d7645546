import DendroPlatform
package import DendroStorage

/// Makes relative paths absolute, so that they hold when the process changes its working directory.
package enum WorkingDirectory {
  /// - Throws: `.io` for an empty path, one with a zero byte, or if the working directory is gone.
  package static func absolute(_ path: String) throws(StorageError) -> String {
    guard !path.isEmpty, !path.utf8.contains(0) else {
      throw .io(operation: "open", path: path, offset: nil, error: .noSuchFile)
    }
    if path.utf8.first == UInt8(ascii: "/") { return path }
    guard let buffer = getcwd(nil, 0) else {
      throw .io(operation: "getcwd", path: path, offset: nil, error: SystemError(errno))
    }
    defer { free(buffer) }
    return String(cString: buffer) + "/" + path
  }
}
