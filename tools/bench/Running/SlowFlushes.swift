import DendroPlatform
import DendroStorage

/// The system's files on a disk that takes a millisecond more for each `fdatasync`, as a disk behind a
/// network does.
final class SlowFlushes: FileSystem {
  private let disk = Environment.system.fileSystem

  static var environment: Environment {
    Environment(
      fileSystem: SlowFlushes(), clock: Environment.system.clock,
      randomness: Environment.system.randomness)
  }

  func createDirectory(_ path: String) throws(SystemError) { try disk.createDirectory(path) }
  func list(_ directory: String) throws(SystemError) -> [String] { try disk.list(directory) }
  func open(_ path: String, _ mode: OpenMode) throws(SystemError) -> any File {
    SlowFile(try disk.open(path, mode))
  }
  func rename(_ from: String, to: String) throws(SystemError) { try disk.rename(from, to: to) }
  func remove(_ path: String) throws(SystemError) { try disk.remove(path) }
  func openDirectory(_ path: String) throws(SystemError) -> any DirectoryHandle {
    try disk.openDirectory(path)
  }
  func identity(_ path: String) throws(SystemError) -> FileIdentity { try disk.identity(path) }
  func watch(_ directory: String) -> (any DirectoryWatch)? { disk.watch(directory) }
}

private final class SlowFile: File {
  private let file: any File

  init(_ file: any File) { self.file = file }

  func synchronize() throws(SystemError) {
    usleep(1_000)
    try file.synchronize()
  }

  func read(
    into buffer: UnsafeMutableRawBufferPointer, at offset: UInt64
  ) throws(SystemError) -> Int { try file.read(into: buffer, at: offset) }
  func write(_ bytes: UnsafeRawBufferPointer, at offset: UInt64) throws(SystemError) -> Int {
    try file.write(bytes, at: offset)
  }
  func preallocate(from offset: UInt64, count: UInt64) throws(SystemError) {
    try file.preallocate(from: offset, count: count)
  }
  func truncate(to size: UInt64) throws(SystemError) { try file.truncate(to: size) }
  func size() throws(SystemError) -> UInt64 { try file.size() }
  func identity() throws(SystemError) -> FileIdentity { try file.identity() }
  func lock(_ kind: LockKind) throws(SystemError) -> Bool { try file.lock(kind) }
  func unlock() { file.unlock() }
}
