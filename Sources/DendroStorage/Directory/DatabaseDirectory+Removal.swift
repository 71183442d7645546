extension DatabaseDirectory {
  /// Removes a segment that nothing needs any more, and its parity; inside `withoutReaders`. Idempotent.
  package func removeSegment(_ segment: SegmentName) throws(StorageError) {
    try checkWritable()
    try removeWithParity(segment.fileName)
  }

  /// Removes a checkpoint that nothing needs any more, and its parity; inside `withoutReaders`. Idempotent.
  package func removeCheckpoint(_ lsn: LogSequenceNumber) throws(StorageError) {
    try checkWritable()
    try removeWithParity(FileName.checkpointName(lsn))
  }

  /// The parity is durably gone before its file: parity alone shows that a file was lost.
  private func removeWithParity(_ name: String) throws(StorageError) {
    if try removeParity(of: name) { try synchronize() }
    try fileSystem.remove(at: path + "/" + name)
  }

  /// Removes a file of bytes that a recovery cut, as `Contents.tornFiles` names it.
  /// Idempotent.
  package func removeTornFile(_ name: String) throws(StorageError) {
    try checkWritable()
    guard case .torn = FileName(name) else { return }
    try fileSystem.remove(at: path + "/" + name)
  }

  /// Removes the oldest files of bytes that recoveries cut: those of segments before `segment`, and all but
  /// the `count` newest.
  package func pruneTornFiles(
    before segment: SegmentName? = nil, keeping count: Int = DatabaseDirectory.tornFileCountMax
  ) throws(StorageError) {
    let files = try contents().tornFiles.compactMap {
      name -> (name: String, key: [UInt64], segment: SegmentName)? in
      guard case .torn(let of, let offset, let copy) = FileName(name) else { return nil }
      return (name, [of.firstLSN.rawValue, offset, copy], of)
    }.sorted { $0.key.lexicographicallyPrecedes($1.key) }
    for (index, file) in files.enumerated() {
      let isOld = segment.map { file.segment < $0 } ?? false
      if isOld || index < files.count - count { try removeTornFile(file.name) }
    }
  }

  /// How many files of bytes that recoveries cut are kept.
  package static let tornFileCountMax = 16

  func remove(_ names: [String]) throws(StorageError) {
    for name in names { try fileSystem.remove(at: path + "/" + name) }
  }
}
