package import DendroStorage
package import DendroTesting

/// A disk in front of a simulated one, to which it passes on each call that it does not implement itself.
package protocol ForwardingDisk: FileSystem {
  var disk: SimulatedDisk { get }
}

extension ForwardingDisk {
  /// The simulated disk's clock and randomness, and this in front of its files.
  package var environment: Environment {
    Environment(fileSystem: self, clock: disk.clock, randomness: disk.randomness)
  }

  package func createDirectory(_ path: String) throws(SystemError) {
    try disk.createDirectory(path)
  }

  package func list(_ directory: String) throws(SystemError) -> [String] {
    try disk.list(directory)
  }

  package func open(_ path: String, _ mode: OpenMode) throws(SystemError) -> any File {
    try disk.open(path, mode)
  }

  package func rename(_ from: String, to: String) throws(SystemError) {
    try disk.rename(from, to: to)
  }

  package func remove(_ path: String) throws(SystemError) { try disk.remove(path) }

  package func openDirectory(_ path: String) throws(SystemError) -> any DirectoryHandle {
    try disk.openDirectory(path)
  }

  package func identity(_ path: String) throws(SystemError) -> FileIdentity {
    try disk.identity(path)
  }

  package func watch(_ directory: String) -> (any DirectoryWatch)? { disk.watch(directory) }
}
