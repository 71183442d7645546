import DendroStorage

extension Retention {
  /// Removes everything but the newest checkpoint, which the caller has read to its end, and the log after
  /// it. Quarantined files are removed too.
  ///
  /// - Returns: false, and not everything was removed, if a reader holds the directory.
  /// - Throws: `.archiveBehind` if an archive has not copied the log up to the checkpoint. Nothing was removed then that
  ///   it needs: it has published how far it is before it reads, so each file is removed only after a look at that.
  static func purge(_ directory: DatabaseDirectory) throws(StorageError) -> Bool {
    let contents = try directory.contents()
    var obsolete = ObsoleteFiles()
    if let newest = contents.checkpoints.last {
      obsolete.checkpoints = contents.checkpoints.dropLast()
      obsolete.segments = zip(contents.segments, contents.segments.dropFirst())
        .filter { $1.firstLSN <= newest.next }.map(\.0)
      let isAlone = try remove(obsolete, directory) { () throws(StorageError) in
        guard
          let lowest = try directory.publishedPositions(of: .archive, count: 1).first,
          lowest < newest
        else { return }
        throw .archiveBehind(path: directory.path, lastLSN: lowest)
      }
      guard isAlone else { return false }
    }
    // No reader uses quarantined files, nor parity without its file.
    try directory.removeOrphanedParity()
    for name in contents.tornFiles {
      try directory.removeTornFile(name)
    }
    try directory.synchronize()
    return true
  }
}
