/// A file system in which damaged files that are opened for reading read as they were.
final class MendedFileSystem: FileSystem {
  private let base: any FileSystem
  /// By their paths.
  private let files: [String: MendedFile]

  init(_ base: any FileSystem, _ mendings: [Mending]) {
    self.base = base
    files = mendings.reduce(into: [:]) { files, mending in
      if let file = mending.mendedFile { files[mending.path] = file }
    }
  }

  func open(_ path: String, _ mode: OpenMode) throws(SystemError) -> any File {
    if mode == .read, let file = files[path] { return file }
    return try base.open(path, mode)
  }

  func createDirectory(_ path: String) throws(SystemError) { try base.createDirectory(path) }
  func list(_ directory: String) throws(SystemError) -> [String] { try base.list(directory) }
  func rename(_ from: String, to: String) throws(SystemError) { try base.rename(from, to: to) }
  func remove(_ path: String) throws(SystemError) { try base.remove(path) }
  func openDirectory(_ path: String) throws(SystemError) -> any DirectoryHandle {
    try base.openDirectory(path)
  }
  func identity(_ path: String) throws(SystemError) -> FileIdentity { try base.identity(path) }
  func watch(_ directory: String) -> (any DirectoryWatch)? { base.watch(directory) }
}
