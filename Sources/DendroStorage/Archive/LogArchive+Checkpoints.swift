// How an archive gets checkpoints.

extension LogArchive {
  /// Copies checkpoints: of a new archive all, later one if the log since the last is longer than it.
  func copyCheckpoints(
    _ checkpoints: [LogSequenceNumber], _ result: inout Extension
  ) throws(StorageError) {
    let contents = try target.contents()
    let reached = checkpoints.filter { $0 <= result.lastLSN && !contents.checkpoints.contains($0) }
    if isNew {
      for lsn in reached { try copyCheckpoint(lsn, &result) }
      return
    }
    let last = contents.checkpoints.last ?? .zero
    guard let newest = reached.last, newest > last else { return }
    var logByteCount: UInt64 = 0
    for segment in contents.segments where segment.firstLSN > last && segment.firstLSN <= newest {
      logByteCount += try target.byteCount(of: segment)
    }
    guard logByteCount > (try source.byteCount(ofCheckpoint: newest)) else { return }
    try copyCheckpoint(newest, &result)
  }

  private func copyCheckpoint(_ lsn: LogSequenceNumber, _ result: inout Extension)
    throws(StorageError)
  {
    let checkpoint = try CheckpointReader.open(source, lsn: lsn)
    for chunk in 0..<checkpoint.chunkCount { try checkpoint.readChunk(chunk) { _ in } }
    let path = source.path(ofCheckpoint: lsn)
    let original = try source.fileSystem.open(at: path, .read)
    let byteCount = try original.size(path: path)
    let file = try NewFile(target.path(ofCheckpoint: lsn), in: target)
    do throws(StorageError) {
      var buffer = RawBuffer()
      buffer.reserve(Self.copiedByteCount)
      var offset: UInt64 = 0
      while offset < byteCount {
        let part = UnsafeMutableRawBufferPointer(start: buffer.base, count: Self.copiedByteCount)
        let count = try original.readFully(into: part, at: offset, path: path)
        guard count > 0 else {
          throw .corrupt(
            path: path, offset: offset, expected: "bytes up to \(byteCount), as before",
            found: "the end of the file")
        }
        try file.file.writeAll(
          UnsafeRawBufferPointer(start: buffer.base, count: count), at: offset,
          path: file.temporaryPath)
        offset += UInt64(count)
      }
      try file.publish()
    } catch {
      file.discard()
      throw error
    }
    result.checkpoints.append(lsn)
    result.byteCount += byteCount
  }

  private static var copiedByteCount: Int { 1 << 20 }
}
