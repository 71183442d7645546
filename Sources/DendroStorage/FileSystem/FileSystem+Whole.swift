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

  /// Creates a directory, and what is missing above it, where it does not exist. Not durable yet.
  func createDirectoryWhole(_ path: String) throws(StorageError) {
    if try createOneDirectory(path) { return }
    let parent = parentDirectory(path)
    if parent != path { try createDirectoryWhole(parent) }
    // Once only: where names cannot be created (/proc) the parent exists and this still fails.
    if try !createOneDirectory(path) {
      throw .io(operation: "create directory", path: path, offset: nil, error: .noSuchFile)
    }
  }

  /// - Returns: false where what is above it is missing; true where it exists now.
  private func createOneDirectory(_ path: String) throws(StorageError) -> Bool {
    do {
      try whole("create directory", path) { () throws(SystemError) in
        try self.createDirectory(path)
      }
      return true
    } catch {
      guard case .io(_, _, _, let system) = error else { throw error }
      if system == .exists { return true }
      if system == .noSuchFile { return false }
      throw error
    }
  }

  /// Makes the names on the way to a directory durable, whoever created them: an earlier attempt may
  /// have failed after some of them.
  func synchronizeWay(to path: String) throws(StorageError) {
    var path = path
    while path != "/" {
      path = parentDirectory(path)
      do {
        try synchronizeDirectoryWhole(path)
      } catch {
        // What may be searched but not read cannot be opened, and some file systems synchronize
        // no directories. Neither is a place where we created something just now.
        switch error {
        case .io(_, _, _, .permissionDenied), .io(_, _, _, .notSupported),
          .io(_, _, _, .invalidArgument):
          return
        default: throw error
        }
      }
    }
  }
}

/// The path without its last component; "/" is its own parent.
func parentDirectory(_ path: String) -> String {
  guard let slash = path.utf8.lastIndex(of: UInt8(ascii: "/")) else { return "/" }
  return slash == path.utf8.startIndex ? "/" : String(path[..<slash])
}
