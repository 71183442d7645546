import DendroStorage
import DendroTree

/// Reads the directory again for a read-only engine, to find what another process has written since.
struct Follower {
  private let directory: DatabaseDirectory
  private let databaseID: DatabaseID?
  private let readsAll: Bool

  init(directory: DatabaseDirectory, databaseID: DatabaseID?, readsAll: Bool) {
    self.directory = directory
    self.databaseID = databaseID
    self.readsAll = readsAll
  }

  /// Recovers the present state of the files, without changing them.
  ///
  /// - Throws: `.ownershipLost` if the directory now holds another database.
  func recover() throws(StorageError) -> Recovery.Result {
    var recovery = Recovery(directory: directory, readsAll: readsAll, progress: nil)
    let result = try recovery.run()
    guard result.databaseID == databaseID else {
      throw .ownershipLost(path: directory.path, reason: "another database stands there now")
    }
    return result
  }

  func close() { directory.close() }
}
