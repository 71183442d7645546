extension LogWriter {
  /// Seals the segment and begins a new one, which makes everything before it durable. Does nothing while
  /// the present segment has no writes.
  ///
  /// - Parameters:
  ///   - time: the new segment's base time.
  ///   - addsSecondRoot: whether the new segment takes writes to the second root also if the present one does not; all
  ///     later ones do then.
  /// - Throws: `.io` out of space or of descriptors: the writer continues in the present segment. Any other error
  ///   poisons it.
  package func roll(time: Int64, addsSecondRoot: Bool = false) throws(StorageError) {
    try checkGood()
    precondition(stagedCount == 0, "staged records are written before a roll")
    if lastLSN < segment.firstLSN { return }
    try synchronize()
    var format = FileFormat()
    format.hasSecondRoot = addsSecondRoot || hasSecondRoot
    let header = SegmentHeader(
      databaseID: segment.databaseID, salt: directory.environment.randomness.next(),
      firstLSN: lastLSN.next, baseTime: time, previousChecksum: checksum, format: format)
    // Room for the seal first: once the successor exists, its predecessor must get one.
    let sealRoom = UInt64(RecordHeader.byteCountMax + Seal.byteCount)
    guard try probe(byteCount: Int(sealRoom)) else {
      throw .io(operation: "preallocate", path: path, offset: offset, error: .noSpace)
    }
    let successor: any File
    do {
      successor = try SegmentCreation.create(header, in: directory)
    } catch {
      try takeBack(header, error)
    }
    do {
      let size = try appendSeal(
        file: file, path: path, segment: segment, offset: offset, checksum: checksum,
        lastLSN: lastLSN, time: lastTime, successorChecksum: header.checksum)
      try file.truncate(to: size, path: path)
      storedByteCount += size - offset
      offset = size
    } catch {
      try takeBack(header, error)
    }
    do {
      try file.synchronize(path: path)
    } catch {
      throw poison(error)
    }
    synchronizeCount += 1
    file = successor
    path = directory.path(of: SegmentName(firstLSN: header.firstLSN))
    do {
      identity = try file.identity(path: path)
    } catch {
      throw poison(error)
    }
    segment = header
    offset = UInt64(SegmentHeader.byteCount)
    preallocation = Preallocation(end: offset, options)
    checksum = header.checksum
    stagedChecksum = checksum
    endsWithIdleRecord = false
    compressor.restart()
  }

  /// Takes back a roll for which there was no room, or no descriptor. Any other error, now or before, poisons the
  /// writer.
  func takeBack(_ header: SegmentHeader, _ cause: StorageError) throws(StorageError) -> Never {
    if case .io("open", let path, _, let error) = cause, error.isOutOfDescriptors,
      path.hasSuffix(FileName.temporarySuffix)
    {
      throw cause  // The successor was not made.
    }
    guard cause.isOutOfSpace else { throw poison(cause) }
    // The seal first: a successor without it is what a crash during a roll leaves, while a seal without its
    // successor means that one is missing.
    try cutBack()
    do {
      try SegmentCreation.takeBack(header, in: directory)
    } catch {
      throw poison(error)
    }
    throw cause
  }
}
