import DendroStorage

/// A watch on a directory of a ``SimulatedDisk``.
final class SimulatedWatch: DirectoryWatch {
  private let disk: SimulatedDisk
  private let node: Int
  private let path: String
  private var changeCount: Int

  init(_ disk: SimulatedDisk, node: Int, path: String, changeCount: Int) {
    self.disk = disk
    self.node = node
    self.path = path
    self.changeCount = changeCount
  }

  func hasChanged() -> Bool {
    guard let count = disk.withState({ $0.changeCount(node, path) }) else { return true }
    defer { changeCount = count }
    return count != changeCount
  }
}
