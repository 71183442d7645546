/// Records what was at a path before a database is made there, so that a failed attempt can remove what it
/// has made, and nothing else.
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

  /// Records the names in the directory once more. Call it with the directory's lock held: another process
  /// may have made a database there before, and every later file is the caller's.
  package mutating func begin() throws(StorageError) {
    for name in try fileSystem.names(in: path) where !Self.isMadeByOpening(name) {
      names.insert(name)
    }
    hasBegun = true
  }

  /// Removes the caller's files and the directories that were not there before, if the disk allows it; before
  /// `begin`, only the lock files. Files of others stay, and so do the directories that contain them. Call it
  /// while the lock is held, or if opening has failed; not if another opener holds the lock.
  package func remove() {
    var kept: [String] = []
    for name in (try? fileSystem.names(in: path)) ?? [] where !names.contains(name) {
      let isOurs = hasBegun ? FileName(name) != nil : Self.isMadeByOpening(name)
      guard isOurs else { continue }
      if Self.keepsOthersOut.contains(name) {
        kept.append(name)
        continue
      }
      guard (try? fileSystem.remove(at: path + "/" + name)) != nil else { return }
    }
    for name in Self.keepsOthersOut where kept.contains(name) {
      guard (try? fileSystem.remove(at: path + "/" + name)) != nil else { return }
    }
    for directory in missing {
      do {
        try fileSystem.remove(at: directory)
      } catch {
        return
      }
    }
  }

  /// What is removed behind all others, in this order. While the mark is there, the directory is no database; while the
  /// lock file is, and is locked, no other opener begins one.
  private static let keepsOthersOut = [
    FileName.archiveName, FileName.readersLockName, FileName.unfinishedBackupName,
    FileName.lockName,
  ]

  private static func isMadeByOpening(_ name: String) -> Bool {
    switch FileName(name) {
    case .lock, .readersLock, .unfinishedBackup, .archive: true
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
