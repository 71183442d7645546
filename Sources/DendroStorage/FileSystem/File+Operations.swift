// The only loops over interrupted calls and short counts. All callers use these operations, which either
// complete or throw an error with file and offset.

/// A call that is interrupted this often in a row fails, so that a broken file system cannot hang its caller.
private let interruptionLimit = 1000

/// Runs one call of a `File` or `FileSystem`, again while it is interrupted.
func uninterrupted<R>(
  _ operation: String, _ path: String, at offset: UInt64? = nil,
  _ call: () throws(SystemError) -> R
) throws(StorageError) -> R {
  var interruptions = 0
  while true {
    do {
      return try call()
    } catch {
      interruptions += 1
      let isLast = interruptions > interruptionLimit
      if error != .interrupted || isLast {
        throw .io(operation: operation, path: path, offset: offset, error: error)
      }
    }
  }
}

extension File {
  /// Reads until the buffer is full or the file ends.
  ///
  /// - Returns: the bytes read, fewer than the buffer holds only at the end of the file.
  func readFully(
    into buffer: UnsafeMutableRawBufferPointer, at offset: UInt64, path: String
  ) throws(StorageError) -> Int {
    var done = 0
    while done < buffer.count {
      let rest = UnsafeMutableRawBufferPointer(rebasing: buffer[done...])
      let place = offset &+ UInt64(done)
      let count = try uninterrupted("read", path, at: place) { () throws(SystemError) in
        try self.read(into: rest, at: place)
      }
      if count <= 0 { break }
      done += min(count, rest.count)
    }
    return done
  }

  /// Writes every byte, in as few calls as the system allows: one, as a rule.
  func writeAll(
    _ bytes: UnsafeRawBufferPointer, at offset: UInt64, path: String
  ) throws(StorageError) {
    var done = 0
    while done < bytes.count {
      let rest = UnsafeRawBufferPointer(rebasing: bytes[done...])
      let place = offset &+ UInt64(done)
      let count = try uninterrupted("write", path, at: place) { () throws(SystemError) in
        try self.write(rest, at: place)
      }
      // A write of one byte or more returns 0 only where something is badly wrong; to repeat it would be an
      // endless loop.
      guard count > 0 else {
        throw .io(operation: "write", path: path, offset: place, error: .inputOutput)
      }
      done += min(count, rest.count)
    }
  }

  func truncate(to size: UInt64, path: String) throws(StorageError) {
    try uninterrupted("truncate", path, at: size) { () throws(SystemError) in
      try self.truncate(to: size)
    }
  }

  /// Repeated after an interruption, which tells of no failed write; never after a failure.
  func synchronize(path: String) throws(StorageError) {
    try uninterrupted("synchronize", path) { () throws(SystemError) in try self.synchronize() }
  }

  func size(path: String) throws(StorageError) -> UInt64 {
    try uninterrupted("size", path) { () throws(SystemError) in try self.size() }
  }

  func identity(path: String) throws(StorageError) -> FileIdentity {
    try uninterrupted("identity", path) { () throws(SystemError) in try self.identity() }
  }

  func lock(_ kind: LockKind, path: String) throws(StorageError) -> Bool {
    try uninterrupted("lock", path) { () throws(SystemError) in try self.lock(kind) }
  }
}
