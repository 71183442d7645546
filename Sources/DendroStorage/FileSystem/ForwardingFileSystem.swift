/// A file system in front of another one, to which it passes on each call that it does not implement itself.
package protocol ForwardingFileSystem: FileSystem {
  var base: any FileSystem { get }
}

extension ForwardingFileSystem {
  package func createDirectory(_ path: String) throws(SystemError) {
    try base.createDirectory(path)
  }

  package func list(_ directory: String) throws(SystemError) -> [String] {
    try base.list(directory)
  }

  package func open(_ path: String, _ mode: OpenMode) throws(SystemError) -> any File {
    try base.open(path, mode)
  }

  package func rename(_ from: String, to: String) throws(SystemError) {
    try base.rename(from, to: to)
  }

  package func remove(_ path: String) throws(SystemError) { try base.remove(path) }

  package func openDirectory(_ path: String) throws(SystemError) -> any DirectoryHandle {
    try base.openDirectory(path)
  }

  package func identity(_ path: String) throws(SystemError) -> FileIdentity {
    try base.identity(path)
  }

  package func watch(_ directory: String) -> (any DirectoryWatch)? { base.watch(directory) }
}
