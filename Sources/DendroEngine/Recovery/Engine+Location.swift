package import DendroStorage
package import DendroTree

extension Engine {
  /// What is at a location of the database in a directory: for a caller that wants nothing else of it.
  ///
  /// As opening for reading only, but of the log behind the checkpoint only those writes are applied that concern
  /// the location, and of the checkpoint only those pages are read. The checksums of all records are checked.
  ///
  /// - Parameters:
  ///   - location: a path; of the root, everything is read.
  ///   - path: as that of `open`.
  /// - Returns: the tree with nothing but what is at the location, and on the way to it.
  /// - Throws: as `open` does.
  /// - Complexity: O(what is at the location + log since the checkpoint). Waits for the disk on the calling thread.
  package static func state(
    of location: Path, in path: String, environment: Environment = .system,
    progress: (@Sendable (RecoveryProgress) -> Void)? = nil
  ) throws(EngineError) -> HistoryState {
    let recovered: Recovery.Result
    do throws(StorageError) {
      let directory = try DatabaseDirectory.openMended(
        try WorkingDirectory.absolute(path), environment: environment)
      defer { directory.close() }
      var recovery = Recovery(
        directory: directory, readsAll: false, progress: progress,
        location: ReplayLocation(location))
      recovered = try recovery.run()
    } catch {
      throw .storage(error)
    }
    let node = try HeadNode(recovered.root, recovered.pages).whole { $0.node(at: location) }
    var root = Node.empty
    root.graft(node, at: location)
    return HistoryState(
      roots: TreeRoots(data: root), lsn: recovered.lastLSN, time: recovered.lastTime)
  }
}
