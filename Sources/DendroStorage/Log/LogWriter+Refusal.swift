// What the writer does when the disk refuses.

extension LogWriter {
  /// Cuts the segment back to the last record that was written whole, and synchronizes: after a
  /// `write` without room. The writer is as before that `write` then; staged records are dropped.
  ///
  /// - Throws: the error of the disk; the writer is poisoned then.
  package func cutBack() throws(StorageError) {
    switch state {
    case .good, .needsCut: break
    case .poisoned, .closed: try checkGood()
    }
    dropStaged()
    do {
      try checkIdentity()
      try file.truncate(to: offset, path: path)
      try file.synchronize(path: path)
    } catch {
      throw poison(error)
    }
    preallocation.didCut(to: offset)
    noteSynchronized()
    state = .good
  }

  /// After a write that failed half way. Whole records of the refused batch may stand in the file, and
  /// recovery would take them for the batch of a writer that was killed.
  func cutRefused() {
    do {
      try checkIdentity()
      try file.truncate(to: offset, path: path)
      try file.synchronize(path: path)
    } catch {
      // Recovery judges what stays.
    }
  }

  /// Poisons the writer after a failure.
  ///
  /// - Parameters:
  ///   - cause: what every later call is refused with.
  ///   - dropsUnsynchronized: whether what is not synchronized was not acknowledged. It is cut off as far as
  ///     the disk still lets it, so that reopening finds what was acknowledged and no more. The cut is not
  ///     synchronized: a crash may leave a write that did not return, whole or not at all.
  package func abandon(_ cause: StorageError, dropsUnsynchronized: Bool) {
    _ = poison(cause)
    guard dropsUnsynchronized, offset > synchronizedOffset else { return }
    do {
      // If the lock was lost, another opener may have appended behind this writer's last record.
      try checkIdentity()
      try file.truncate(to: synchronizedOffset, path: path)
    } catch {
      // Recovery judges what stays.
    }
  }

  /// Whether a disk that was full has room for another `byteCount` bytes now. They stay preallocated for the
  /// next records.
  package func probe(byteCount: Int = 64 * 1024) throws(StorageError) -> Bool {
    try checkGood()
    let end = offset + UInt64(stagedCount) + UInt64(byteCount)
    if end <= preallocation.end { return true }
    do throws(StorageError) {
      try preallocation.require(end, step: byteCount, of: file, path)
    } catch {
      if error.isOutOfSpace {
        try cutBack()
        return false
      }
      throw poison(error)
    }
    return true
  }

  func checkIdentity() throws(StorageError) {
    try directory.checkOwnership()
    let found: FileIdentity
    do {
      found = try directory.fileSystem.identity(at: path)
    } catch {
      if case .io(_, _, _, .noSuchFile) = error {
        throw .ownershipLost(path: path, reason: "the segment was moved or removed")
      }
      throw error
    }
    if found != identity {
      throw .ownershipLost(path: path, reason: "another file stands there now")
    }
  }

  func checkGood() throws(StorageError) {
    switch state {
    case .good: return
    case .needsCut:
      throw .io(operation: "write before the cut", path: path, offset: offset, error: .noSpace)
    case .poisoned(let error): throw error
    case .closed:
      throw .ownershipLost(path: path, reason: "the log was closed")
    }
  }

  func poison(_ error: StorageError) -> StorageError {
    if case .poisoned(let first) = state { return first }
    state = .poisoned(error)
    dropStaged()
    return error
  }
}
