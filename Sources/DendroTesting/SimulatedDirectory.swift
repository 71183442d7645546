import DendroStorage

/// A handle on a directory of a ``SimulatedDisk``. It stays that of the directory, whatever becomes of its name.
final class SimulatedDirectory: DirectoryHandle {
  private let disk: SimulatedDisk
  private let node: Int
  private let path: String

  init(_ disk: SimulatedDisk, node: Int, path: String) {
    self.disk = disk
    self.node = node
    self.path = path
  }

  func synchronize() throws(SystemError) {
    try disk.withState { (state) throws(SystemError) in
      try state.synchronizeDirectory(node, path)
    }
  }
}
