extension DatabaseDirectory {
  /// What the directory holds.
  package struct Contents: Sendable {
    /// Ascending.
    package var segments: [SegmentName] = []
    /// Ascending.
    package var checkpoints: [LogSequenceNumber] = []
    /// Files with bytes that a recovery cut.
    package var tornFiles: [String] = []
    /// Files with the parity of segments and checkpoints.
    package var parityFiles: [String] = []
    /// Names that are not the database's: reported, never touched.
    package var foreign: [String] = []
    /// Unfinished files of the database; a writer removes them when it opens the directory.
    package var temporaries: [String] = []
    /// Whether a backup into the directory is under way, or was cut short.
    package var isUnfinishedBackup = false
    /// Whether the directory is an archive, which no opener writes.
    package var isArchive = false

    package init() {}

    /// Whether there is no database here.
    package var isEmpty: Bool { segments.isEmpty && checkpoints.isEmpty }

    /// The names of the checkpoints and of the segments.
    package var fileNames: [String] {
      checkpoints.map { FileName.checkpointName($0) } + segments.map(\.fileName)
    }

    /// Parity of files that are not there.
    package var orphanedParityFiles: [String] {
      if parityFiles.isEmpty { return [] }
      let own = Set(fileNames.map { FileName.parityName(of: $0) })
      return parityFiles.filter { !own.contains($0) }
    }

    /// The files of an archive that are missing, as their parity shows. In a database, a power loss may leave the parity of
    /// any file that was removed. An archive loses its oldest files at most, as a purge removes them.
    package var missingFiles: [String] {
      if !isArchive { return [] }
      return orphanedParityFiles.compactMap { name in
        guard case .parity(let covered) = FileName(name) else { return nil }
        switch FileName(covered) {
        case .segment(let segment):
          return segments.first.map { $0 < segment } ?? true ? covered : nil
        case .checkpoint(let lsn): return checkpoints.first.map { $0 < lsn } ?? true ? covered : nil
        default: return nil
        }
      }
    }
  }

  /// The names in the directory, by kind.
  ///
  /// - Complexity: one listing; no file is opened.
  package func contents() throws(StorageError) -> Contents {
    try Self.contents(of: path, fileSystem)
  }

  static func contents(of path: String, _ files: any FileSystem) throws(StorageError)
    -> Contents
  {
    let names: [String]
    do {
      names = try files.names(in: path)
    } catch {
      if case .io(_, _, _, .noSuchFile) = error { throw .notFound(path: path) }
      throw error
    }
    var contents = Contents()
    for name in names {
      switch FileName(name) {
      case .segment(let segment): contents.segments.append(segment)
      case .checkpoint(let lsn): contents.checkpoints.append(lsn)
      case .torn: contents.tornFiles.append(name)
      case .parity: contents.parityFiles.append(name)
      case .temporary: contents.temporaries.append(name)
      case .unfinishedBackup: contents.isUnfinishedBackup = true
      case .archive: contents.isArchive = true
      case .lock, .readersLock: break
      case nil: contents.foreign.append(name)
      }
    }
    contents.segments.sort()
    contents.checkpoints.sort()
    contents.tornFiles.sort()
    contents.parityFiles.sort()
    contents.foreign.sort()
    contents.temporaries.sort()
    return contents
  }
}
