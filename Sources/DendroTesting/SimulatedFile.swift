import DendroStorage

/// A handle on a file of a ``SimulatedDisk``.
final class SimulatedFile: File {
  private let disk: SimulatedDisk
  private let node: Int
  private let handle: UInt64
  private let path: String
  private let isWritable: Bool

  init(_ disk: SimulatedDisk, node: Int, handle: UInt64, path: String, isWritable: Bool) {
    self.disk = disk
    self.node = node
    self.handle = handle
    self.path = path
    self.isWritable = isWritable
  }

  deinit {
    disk.withState { $0.close(node, handle) }
  }

  func read(into buffer: UnsafeMutableRawBufferPointer, at offset: UInt64) throws(SystemError)
    -> Int
  {
    try disk.withState { (state) throws(SystemError) in
      try state.read(node, path, into: buffer, at: offset)
    }
  }

  func write(_ bytes: UnsafeRawBufferPointer, at offset: UInt64) throws(SystemError) -> Int {
    try requireWritable()
    return try disk.withState { (state) throws(SystemError) in
      try state.write(node, path, bytes, at: offset)
    }
  }

  func preallocate(from offset: UInt64, count: UInt64) throws(SystemError) {
    try requireWritable()
    try disk.withState { (state) throws(SystemError) in
      try state.preallocate(node, path, from: offset, count: count)
    }
  }

  func truncate(to size: UInt64) throws(SystemError) {
    try requireWritable()
    try disk.withState { (state) throws(SystemError) in
      try state.truncate(node, path, to: size)
    }
  }

  func synchronize() throws(SystemError) {
    try disk.withState { (state) throws(SystemError) in try state.synchronize(node, path) }
  }

  func size() throws(SystemError) -> UInt64 {
    try disk.withState { (state) throws(SystemError) in try state.size(node, path) }
  }

  func identity() throws(SystemError) -> FileIdentity {
    try disk.withState { (state) throws(SystemError) in try state.identity(node, path) }
  }

  func lock(_ kind: LockKind) throws(SystemError) -> Bool {
    try disk.withState { (state) throws(SystemError) in
      try state.lock(node, path, handle, kind)
    }
  }

  func unlock() { disk.withState { $0.unlock(node, handle) } }

  func lockByte(at position: UInt64) throws(SystemError) {
    disk.withState { $0.lockByte(node, handle, position) }
  }

  func lockedByte(in range: Range<UInt64>) throws(SystemError) -> UInt64? {
    disk.withState { $0.lockedByte(node, handle, range) }
  }

  private func requireWritable() throws(SystemError) {
    // EBADF, as pwrite(2) has it for a descriptor that was opened for reading.
    guard isWritable else { throw SystemError(9) }
  }
}
