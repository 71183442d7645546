extension FileSystem {
  func open(at path: String, _ mode: OpenMode) throws(StorageError) -> any File {
    try uninterrupted("open", path) { () throws(SystemError) in try self.open(path, mode) }
  }

  func names(in path: String) throws(StorageError) -> [String] {
    try uninterrupted("list", path) { () throws(SystemError) in try self.list(path) }
  }

  func rename(from: String, to: String) throws(StorageError) {
    try uninterrupted("rename", from) { () throws(SystemError) in try self.rename(from, to: to) }
  }

  /// Removes a file. One that does not exist is no error.
  func remove(at path: String) throws(StorageError) {
    do {
      try uninterrupted("remove", path) { () throws(SystemError) in try self.remove(path) }
    } catch {
      if case .io(_, _, _, .noSuchFile) = error { return }
      throw error
    }
  }

  func openDirectory(at path: String) throws(StorageError) -> any DirectoryHandle {
    try uninterrupted("open directory", path) { () throws(SystemError) in
      try self.openDirectory(path)
    }
  }

  func synchronizeDirectory(at path: String) throws(StorageError) {
    try openDirectory(at: path).synchronize(path: path)
  }

  func identity(at path: String) throws(StorageError) -> FileIdentity {
    try uninterrupted("identity", path) { () throws(SystemError) in try self.identity(path) }
  }

  /// Creates a directory, and what is missing above it, if it does not exist. Not durable yet.
  func createDirectories(to path: String) throws(StorageError) {
    if try createOneDirectory(path) { return }
    let parent = parentDirectory(path)
    if parent != path { try createDirectories(to: parent) }
    // Once only: if names cannot be created (/proc) the parent exists and this still fails.
    if try !createOneDirectory(path) {
      throw .io(operation: "create directory", path: path, offset: nil, error: .noSuchFile)
    }
  }

  /// - Returns: false if what is above it is missing; true if it exists now.
  private func createOneDirectory(_ path: String) throws(StorageError) -> Bool {
    do {
      try uninterrupted("create directory", path) { () throws(SystemError) in
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

  /// Makes the names on the way to a directory durable, those that existed too: an earlier attempt may have
  /// failed after it created some of them.
  func synchronizeWay(to path: String) throws(StorageError) {
    var path = path
    while path != "/" {
      path = parentDirectory(path)
      do {
        try synchronizeDirectory(at: path)
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

extension DirectoryHandle {
  /// Repeated after an interruption, which tells of no failed write; never after a failure.
  func synchronize(path: String) throws(StorageError) {
    try uninterrupted("synchronize directory", path) { () throws(SystemError) in
      try self.synchronize()
    }
  }
}

/// The path without its last component; "/" is its own parent.
func parentDirectory(_ path: String) -> String {
  guard let slash = path.utf8.lastIndex(of: UInt8(ascii: "/")) else { return "/" }
  return slash == path.utf8.startIndex ? "/" : String(path[..<slash])
}
