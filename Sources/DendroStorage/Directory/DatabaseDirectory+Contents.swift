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

    /// The files of an archive that are missing, as their parity shows, which a purge removes first.
    package var missingFiles: [String] {
      if !isArchive { return [] }
      return orphanedParityFiles.compactMap { name in
        if case .parity(let covered) = FileName(name) { covered } else { nil }
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
