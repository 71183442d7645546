/// A file in front of another one, to which it passes on each call that it does not implement itself.
package protocol ForwardingFile: File {
  var file: any File { get }
}

extension ForwardingFile {
  package func read(
    into buffer: UnsafeMutableRawBufferPointer, at offset: UInt64
  ) throws(SystemError) -> Int {
    try file.read(into: buffer, at: offset)
  }

  package func write(
    _ bytes: UnsafeRawBufferPointer, at offset: UInt64
  ) throws(SystemError) -> Int {
    try file.write(bytes, at: offset)
  }

  package func preallocate(from offset: UInt64, count: UInt64) throws(SystemError) {
    try file.preallocate(from: offset, count: count)
  }

  package func truncate(to size: UInt64) throws(SystemError) { try file.truncate(to: size) }

  package func synchronize() throws(SystemError) { try file.synchronize() }

  package func size() throws(SystemError) -> UInt64 { try file.size() }

  package func identity() throws(SystemError) -> FileIdentity { try file.identity() }

  package func lock(_ kind: LockKind) throws(SystemError) -> Bool { try file.lock(kind) }

  package func unlock() { file.unlock() }

  package func lockByte(at position: UInt64) throws(SystemError) {
    try file.lockByte(at: position)
  }

  package func lockedByte(in range: Range<UInt64>) throws(SystemError) -> UInt64? {
    try file.lockedByte(in: range)
  }
}
