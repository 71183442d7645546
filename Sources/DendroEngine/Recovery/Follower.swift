import DendroStorage
import DendroTree

/// What a read-only engine needs to see again what another process has written since.
struct Follower {
  private let directory: DatabaseDirectory

  init(directory: DatabaseDirectory) { self.directory = directory }

  func recover() throws(StorageError) -> Recovery.Result {
    var recovery = Recovery(directory: directory, progress: nil)
    return try recovery.run()
  }

  func close() { directory.close() }
}
