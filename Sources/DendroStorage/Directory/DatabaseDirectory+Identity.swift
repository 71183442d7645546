import Synchronization

// Which database the files in a directory belong to. Each file is asked before a byte of it counts.

extension DatabaseDirectory {
  /// The database that the files belong to; nil if no file says that. It is found out once.
  ///
  /// The newest segment and the newest checkpoint decide if they agree, otherwise most of all segments and checkpoints.
  ///
  /// - Throws: `.io`.
  package func databaseID() throws(StorageError) -> DatabaseID? {
    if let known = knownID.withLock({ $0 }) { return known }
    let found = try findID()
    if let found { knownID.withLock { $0 = found } }
    return found
  }

  /// Finds out anew which database the files belong to: another one may have been put there.
  package func identify() throws(StorageError) {
    let found = try findID()
    knownID.withLock { $0 = found }
  }

  /// Whether a checkpoint says that it belongs to another database.
  package func isForeign(checkpoint lsn: LogSequenceNumber) throws(StorageError) -> Bool {
    guard let id = try databaseID(), let found = try fileID(at: path(ofCheckpoint: lsn)) else {
      return false
    }
    return id != found
  }

  private func findID() throws(StorageError) -> DatabaseID? {
    let contents = try contents()
    let segment = try contents.segments.last.flatMap { (name) throws(StorageError) in
      try fileID(at: path(of: name))
    }
    let checkpoint = try contents.checkpoints.last.flatMap { (lsn) throws(StorageError) in
      try fileID(at: path(ofCheckpoint: lsn))
    }
    if contents.checkpoints.isEmpty, contents.segments.count == 1 { return segment }
    if let segment, segment == checkpoint { return segment }
    var ids: [DatabaseID] = []
    for name in contents.segments {
      if let id = try fileID(at: path(of: name)) { ids.append(id) }
    }
    for lsn in contents.checkpoints {
      if let id = try fileID(at: path(ofCheckpoint: lsn)) { ids.append(id) }
    }
    return DatabaseID.mostFrequent(ids)
  }

  /// The database that a file belongs to; nil if its header cannot be read, or it is not there any more.
  private func fileID(at path: String) throws(StorageError) -> DatabaseID? {
    do throws(StorageError) {
      let bytes = try SegmentHeader.bytes(at: path, in: self)
      return bytes.withUnsafeBytes { bytes in
        if let header = try? SegmentHeader(decoding: bytes, path: path) { return header.databaseID }
        return (try? CheckpointHeader(decoding: bytes, path: path))?.databaseID
      }
    } catch {
      if case .io(_, _, _, .noSuchFile) = error { return nil }
      // A checkpoint that the medium does not give back says nothing: the older one serves.
      guard path.hasSuffix(".checkpoint"), !error.isOfProcess else { throw error }
      return nil
    }
  }

  /// Checks that a file belongs to the database.
  ///
  /// - Throws: `.corrupt`, which names the file.
  func check(_ found: DatabaseID, path: String) throws(StorageError) {
    guard let id = try databaseID(), id != found else { return }
    throw .corrupt(path: path, offset: 16, expected: "database \(id)", found: "\(found)")
  }
}

extension DatabaseID {
  /// Of several that are there as often, the first: the order of the files decides, not that of a dictionary.
  static func mostFrequent(_ ids: [DatabaseID]) -> DatabaseID? {
    var counts: [DatabaseID: Int] = [:]
    for id in ids { counts[id, default: 0] += 1 }
    let most = counts.values.max()
    return ids.first { counts[$0] == most }
  }
}
