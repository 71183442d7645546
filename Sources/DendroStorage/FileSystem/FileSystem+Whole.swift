extension FileSystem {
  func openWhole(_ path: String, _ mode: OpenMode) throws(StorageError) -> any File {
    try whole("open", path) { () throws(SystemError) in try self.open(path, mode) }
  }

  func listWhole(_ path: String) throws(StorageError) -> [String] {
    try whole("list", path) { () throws(SystemError) in try self.list(path) }
  }

  func renameWhole(_ from: String, to: String) throws(StorageError) {
    try whole("rename", from) { () throws(SystemError) in try self.rename(from, to: to) }
  }

  /// Removes a file; one that is gone already is as good as removed.
  func removeWhole(_ path: String) throws(StorageError) {
    do {
      try whole("remove", path) { () throws(SystemError) in try self.remove(path) }
    } catch {
      if case .io(_, _, _, .noSuchFile) = error { return }
      throw error
    }
  }

  func synchronizeDirectoryWhole(_ path: String) throws(StorageError) {
    try whole("synchronize directory", path) { () throws(SystemError) in
      try self.synchronizeDirectory(path)
    }
  }

  func identityWhole(_ path: String) throws(StorageError) -> FileIdentity {
    try whole("identity", path) { () throws(SystemError) in try self.identity(path) }
  }

  /// Creates a directory and what is missing above it, each durable in its parent.
  ///
  /// - Returns: whether the directory itself was created.
  func createDirectoryWhole(_ path: String) throws(StorageError) -> Bool {
    do {
      try whole("create directory", path) { () throws(SystemError) in
        try self.createDirectory(path)
      }
    } catch {
      guard case .io(_, _, _, let system) = error else { throw error }
      if system == .exists { return false }
      let parent = parentDirectory(path)
      guard system == .noSuchFile, parent != path else { throw error }
      _ = try createDirectoryWhole(parent)
      return try createDirectoryWhole(path)
    }
    do {
      try synchronizeDirectoryWhole(parentDirectory(path))
    } catch {
      // A parent that may be searched but not read cannot be opened, hence not synchronized.
      if case .io(_, _, _, .permissionDenied) = error { return true }
      throw error
    }
    return true
  }
}

/// The path without its last component; "/" is its own parent.
func parentDirectory(_ path: String) -> String {
  guard let slash = path.utf8.lastIndex(of: UInt8(ascii: "/")) else { return "/" }
  return slash == path.utf8.startIndex ? "/" : String(path[..<slash])
}
