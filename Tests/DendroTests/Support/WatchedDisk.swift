import DendroStorage
import DendroTesting
import Dispatch
import Foundation

/// A simulated disk that notes which threads read checkpoints, and can make calls wait: a slow disk, without a clock.
final class WatchedDisk: FileSystem {
  enum Call { case readCheckpoint, synchronizeLog }

  let disk: SimulatedDisk
  private let condition = NSCondition()
  // Guarded by the condition.
  private nonisolated(unsafe) var held: Call?
  private nonisolated(unsafe) var waitingCount = 0
  private nonisolated(unsafe) var readers: [Reader] = []

  struct Reader {
    /// Whether it is a thread of a queue that has the mark.
    var isMarked: Bool
    var thread: Thread
  }

  /// Marks the queue of an actor.
  static let mark = DispatchSpecificKey<Bool>()

  init(_ disk: SimulatedDisk) { self.disk = disk }

  var environment: DendroStorage.Environment {
    DendroStorage.Environment(
      fileSystem: self, clock: disk.clock, randomness: disk.randomness)
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

  /// The threads that have read a checkpoint since the last call, once for each reading.
  func takeReaders() -> [Reader] {
    condition.withLock {
      defer { readers = [] }
      return readers
    }
  }

  fileprivate func pass(_ call: Call) {
    condition.withLock {
      if call == .readCheckpoint {
        readers.append(
          Reader(
            isMarked: DispatchQueue.getSpecific(key: Self.mark) ?? false, thread: .current))
      }
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
    WatchedFile(try disk.open(path, mode), path, of: self)
  }
  func rename(_ from: String, to: String) throws(SystemError) { try disk.rename(from, to: to) }
  func remove(_ path: String) throws(SystemError) { try disk.remove(path) }
  func openDirectory(_ path: String) throws(SystemError) -> any DirectoryHandle {
    try disk.openDirectory(path)
  }
  func identity(_ path: String) throws(SystemError) -> FileIdentity { try disk.identity(path) }
  func watch(_ directory: String) -> (any DirectoryWatch)? { disk.watch(directory) }
}

private final class WatchedFile: File {
  private let file: any File
  private let path: String
  private let disk: WatchedDisk

  init(_ file: any File, _ path: String, of disk: WatchedDisk) {
    self.file = file
    self.path = path
    self.disk = disk
  }

  func read(into buffer: UnsafeMutableRawBufferPointer, at offset: UInt64) throws(SystemError)
    -> Int
  {
    if path.hasSuffix(".checkpoint") { disk.pass(.readCheckpoint) }
    return try file.read(into: buffer, at: offset)
  }
  func write(_ bytes: UnsafeRawBufferPointer, at offset: UInt64) throws(SystemError) -> Int {
    try file.write(bytes, at: offset)
  }
  func preallocate(from offset: UInt64, count: UInt64) throws(SystemError) {
    try file.preallocate(from: offset, count: count)
  }
  func truncate(to size: UInt64) throws(SystemError) { try file.truncate(to: size) }
  func synchronize() throws(SystemError) {
    if path.hasSuffix(".log") { disk.pass(.synchronizeLog) }
    try file.synchronize()
  }
  func size() throws(SystemError) -> UInt64 { try file.size() }
  func identity() throws(SystemError) -> FileIdentity { try file.identity() }
  func lock(_ kind: LockKind) throws(SystemError) -> Bool { try file.lock(kind) }
  func unlock() { file.unlock() }
}
