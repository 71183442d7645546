package import DendroStorage
package import DendroTesting
import Foundation

/// A simulated disk that can be made to wait in one kind of call: a slow disk, without a clock.
package final class HeldDisk: ForwardingDisk {
  package enum Call: Sendable {
    case write, synchronize, synchronizeLog, removeSegment, readCheckpoint
  }

  package let disk: SimulatedDisk
  private let condition = NSCondition()
  // Guarded by the condition.
  private nonisolated(unsafe) var held: Call?
  private nonisolated(unsafe) var waitingCount = 0
  private nonisolated(unsafe) var created: (@Sendable (String) -> Void)?
  private nonisolated(unsafe) var removed: (@Sendable (String) -> Void)?
  private nonisolated(unsafe) var read: (@Sendable () -> Void)?

  package init(_ disk: SimulatedDisk = SimulatedDisk(seed: 1)) { self.disk = disk }

  /// From now on such calls wait.
  package func hold(_ call: Call) { condition.withLock { held = call } }

  package func release() {
    condition.withLock {
      held = nil
      condition.broadcast()
    }
  }

  /// Returns once a call waits.
  package func waitForCall() {
    condition.withLock {
      while waitingCount == 0 { condition.wait() }
    }
  }

  /// From now on `body` is called with the path of each file that is created, on the thread that creates it.
  package func onCreate(_ body: (@Sendable (String) -> Void)?) {
    condition.withLock { created = body }
  }

  /// From now on `body` is called with the path of each file that is about to be removed, on the thread that
  /// removes it.
  package func onRemove(_ body: (@Sendable (String) -> Void)?) {
    condition.withLock { removed = body }
  }

  /// From now on `body` is called before each read of a checkpoint, on the thread that reads.
  package func onRead(_ body: (@Sendable () -> Void)?) { condition.withLock { read = body } }

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

  package func open(_ path: String, _ mode: OpenMode) throws(SystemError) -> any File {
    let file = HeldFile(try disk.open(path, mode), path, of: self)
    if mode == .create { condition.withLock { created }?(path) }
    return file
  }

  package func remove(_ path: String) throws(SystemError) {
    if path.hasSuffix(".log") { pass(.removeSegment) }
    condition.withLock { removed }?(path)
    try disk.remove(path)
  }
}

private final class HeldFile: ForwardingFile {
  let file: any File
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

  func synchronize() throws(SystemError) {
    disk.pass(.synchronize)
    if path.hasSuffix(".log") { disk.pass(.synchronizeLog) }
    try file.synchronize()
  }
}
