import DendroStorage
import DendroTesting
import Foundation

/// A simulated disk that can be made to wait in one kind of call: a slow disk, without a clock.
final class HeldDisk: FileSystem {
  enum Call { case write, synchronize, removeSegment, readCheckpoint }

  let disk = SimulatedDisk(seed: 1)
  private let condition = NSCondition()
  // Guarded by the condition.
  private nonisolated(unsafe) var held: Call?
  private nonisolated(unsafe) var waitingCount = 0
  /// Called with the path of each file that is created, on the thread that creates it.
  private nonisolated(unsafe) var created: (@Sendable (String) -> Void)?
  /// Called with the path of each file that is about to be removed, on the thread that removes it.
  private nonisolated(unsafe) var removed: (@Sendable (String) -> Void)?
  /// Called before each read of a checkpoint, on the thread that reads.
  private nonisolated(unsafe) var read: (@Sendable () -> Void)?

  var environment: Environment {
    Environment(fileSystem: self, clock: disk.clock, randomness: disk.randomness)
  }

  /// From now on such calls wait.
  func hold(_ call: Call) { condition.withLock { held = call } }

  func release() {
    condition.withLock {
      held = nil
      condition.broadcast()
    }
  }

  /// Returns once a call waits.
  func waitForCall() {
    condition.withLock {
      while waitingCount == 0 { condition.wait() }
    }
  }

  /// From now on `body` is called with the path of each file that is created.
  func onCreate(_ body: (@Sendable (String) -> Void)?) { condition.withLock { created = body } }

  /// From now on `body` is called with the path of each file that is about to be removed.
  func onRemove(_ body: (@Sendable (String) -> Void)?) { condition.withLock { removed = body } }

  /// From now on `body` is called before each read of a checkpoint.
  func onRead(_ body: (@Sendable () -> Void)?) { condition.withLock { read = body } }

  fileprivate func passRead(of path: String) {
    guard path.hasSuffix(".checkpoint") else { return }
    condition.withLock { read }?()
    pass(.readCheckpoint)
  }

  fileprivate func pass(_ call: Call) {
    condition.withLock {
      guard held == call else { return }
      waitingCount += 1
      condition.broadcast()
      while held == call { condition.wait() }
      waitingCount -= 1
    }
  }

  func createDirectory(_ path: String) throws(SystemError) { try disk.createDirectory(path) }
  func list(_ directory: String) throws(SystemError) -> [String] { try disk.list(directory) }
  func open(_ path: String, _ mode: OpenMode) throws(SystemError) -> any File {
    let file = HeldFile(try disk.open(path, mode), path, of: self)
    if mode == .create { condition.withLock { created }?(path) }
    return file
  }
  func rename(_ from: String, to: String) throws(SystemError) { try disk.rename(from, to: to) }
  func remove(_ path: String) throws(SystemError) {
    if path.hasSuffix(".log") { pass(.removeSegment) }
    condition.withLock { removed }?(path)
    try disk.remove(path)
  }
  func openDirectory(_ path: String) throws(SystemError) -> any DirectoryHandle {
    try disk.openDirectory(path)
  }
  func identity(_ path: String) throws(SystemError) -> FileIdentity { try disk.identity(path) }
  func watch(_ directory: String) -> (any DirectoryWatch)? { disk.watch(directory) }
}

private final class HeldFile: File {
  private let file: any File
  private let path: String
  private let disk: HeldDisk

  init(_ file: any File, _ path: String, of disk: HeldDisk) {
    self.file = file
    self.path = path
    self.disk = disk
  }

  func read(into buffer: UnsafeMutableRawBufferPointer, at offset: UInt64) throws(SystemError)
    -> Int
  {
    disk.passRead(of: path)
    return try file.read(into: buffer, at: offset)
  }
  func write(_ bytes: UnsafeRawBufferPointer, at offset: UInt64) throws(SystemError) -> Int {
    disk.pass(.write)
    return try file.write(bytes, at: offset)
  }
  func preallocate(from offset: UInt64, count: UInt64) throws(SystemError) {
    try file.preallocate(from: offset, count: count)
  }
  func truncate(to size: UInt64) throws(SystemError) { try file.truncate(to: size) }
  func synchronize() throws(SystemError) {
    disk.pass(.synchronize)
    try file.synchronize()
  }
  func size() throws(SystemError) -> UInt64 { try file.size() }
  func identity() throws(SystemError) -> FileIdentity { try file.identity() }
  func lock(_ kind: LockKind) throws(SystemError) -> Bool { try file.lock(kind) }
  func unlock() { file.unlock() }
}
