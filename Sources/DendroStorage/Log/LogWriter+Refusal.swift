// What the writer does when the disk refuses.

extension LogWriter {
  /// Cuts the segment back to the last complete record, and synchronizes: after a `write` without room. The
  /// writer is then in the state before that `write`, without staged records.
  ///
  /// - Throws: the disk's error, which poisons the writer.
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

  /// Cuts off the bytes of a failed write. They may contain whole records of the refused batch, which
  /// recovery would take for the batch of a writer that was killed.
  func cutRefused() {
    do {
      try checkIdentity()
      try file.truncate(to: offset, path: path)
      try file.synchronize(path: path)
    } catch {
      // Recovery decides about bytes that could not be cut.
    }
  }

  /// Poisons the writer after a failure.
  ///
  /// - Parameters:
  ///   - cause: the error of every later call.
  ///   - start: from where on the segment has writes that were not acknowledged; nil if it has none. They are cut off,
  ///     if the disk still allows it, so that reopening finds the acknowledged writes and no more. The cut is not
  ///     synchronized: a crash may leave a write that did not return, whole or not at all.
  package func abandon(_ cause: StorageError, unacknowledgedFrom start: UInt64?) {
    _ = poison(cause)
    guard let start, offset > start else { return }
    do {
      // If the lock was lost, another opener may have appended behind this writer's last record.
      try checkIdentity()
      try file.truncate(to: start, path: path)
    } catch {
      // Recovery decides about bytes that could not be cut.
    }
  }

  /// Whether a disk that was full has room for another `byteCount` bytes now. That room stays preallocated
  /// for the next records.
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

  /// Checks that the paths of the lock file and of the segment still name the files that are open.
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
