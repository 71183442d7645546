// How an archive keeps the parity of its files.

extension LogArchive {
  /// Writes the parity of the files that have changed; the first time, and after an extension that failed, of all files
  /// of which it is missing or older.
  func updateParity(_ result: inout Extension) throws(StorageError) {
    guard keepsParity else { return }
    if isParityComplete {
      let changed =
        result.checkpoints.map { FileName.checkpointName($0) }
        + Set(result.segments + result.sealed).sorted().map(\.fileName)
      for name in changed { result.parityByteCount += try target.writeParity(of: name) }
    } else {
      result.parityByteCount = try target.completeParity(of: target.contents().fileNames)
      isParityComplete = true
    }
  }
}
