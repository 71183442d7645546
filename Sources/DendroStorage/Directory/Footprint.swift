/// What was at a place before a database is made there, so that an attempt that fails can take away what
/// it made, and nothing else.
package struct Footprint {
  private let path: String
  private let fileSystem: any FileSystem
  /// What was in the directory.
  private var names: Set<String>
  private var hasBegun = false
  /// The directory and those above it that were not there, the deepest first.
  private let missing: [String]

  /// - Parameters:
  ///   - path: absolute; of a directory that may exist or not.
  ///   - fileSystem: where it is.
  package init(of path: String, _ fileSystem: any FileSystem) throws(StorageError) {
    self.path = path
    self.fileSystem = fileSystem
    var missing: [String] = []
    var place = path
    while place != "/", try !Self.exists(place, fileSystem) {
      missing.append(place)
      place = parentDirectory(place)
    }
    names = missing.isEmpty ? Set(try fileSystem.names(in: path)) : []
    self.missing = missing
  }

  /// From now on whatever comes is ours, since the caller holds the directory's lock: another process may
  /// have made a database there while the caller waited for it.
  package mutating func begin() throws(StorageError) {
    for name in try fileSystem.names(in: path) where !Self.isMadeByOpening(name) {
      names.insert(name)
    }
    hasBegun = true
  }

  /// Removes the files of ours and the directories that were not there before, as far as the disk lets
  /// it; before `begin`, of files only the locks. What others put there stays, and so do the directories
  /// that hold it. Not where another opener holds the lock.
  package func remove() {
    for name in (try? fileSystem.names(in: path)) ?? [] where !names.contains(name) {
      let isOurs = hasBegun ? FileName(name) != nil : Self.isMadeByOpening(name)
      guard isOurs else { continue }
      try? fileSystem.remove(at: path + "/" + name)
    }
    for directory in missing {
      do {
        try fileSystem.remove(at: directory)
      } catch {
        return
      }
    }
  }

  private static func isMadeByOpening(_ name: String) -> Bool {
    switch FileName(name) {
    case .lock, .readersLock, .unfinishedBackup: true
    default: false
    }
  }

  private static func exists(_ path: String, _ fileSystem: any FileSystem) throws(StorageError)
    -> Bool
  {
    do {
      _ = try fileSystem.identity(at: path)
      return true
    } catch {
      if case .io(_, _, _, .noSuchFile) = error { return false }
      throw error
    }
  }
}
