import DendroEngine
import DendroStorage
import DendroTestSupport
import DendroTesting
import Synchronization

/// A simulated disk on which something else happens right before a call: what another process, or
/// another thread, does at that very moment.
final class InterposedDisk: ForwardingDisk {
  let disk: SimulatedDisk
  /// Whether writes do nothing, and say so.
  let ignoresWrites = Atomic<Bool>(false)
  private let waiting = Mutex<[Event]>([])

  /// What happens before the `left`-th call of its kind from now on.
  private struct Event: Sendable {
    let kind: DiskOperation.Kind
    let pathPart: String
    var left: Int
    let body: Body
  }

  private final class Body: Sendable {
    let call: @Sendable () -> Void
    init(_ call: @escaping @Sendable () -> Void) { self.call = call }
  }

  init(_ disk: SimulatedDisk) { self.disk = disk }

  func open(_ options: EngineOptions = EngineRecording.options(), mode: Engine.Mode = .readWrite)
    throws(EngineError) -> Engine
  {
    try Engine.open(
      at: EngineRecording.directory, options: options, environment: environment, mode: mode)
  }

  /// Has `body` called once, under no lock of the disk, by the thread that makes the call.
  func interpose(
    before kind: DiskOperation.Kind, on pathPart: String, number: Int = 1,
    _ body: @escaping @Sendable () -> Void
  ) {
    let event = Event(kind: kind, pathPart: pathPart, left: number, body: Body(body))
    waiting.withLock { $0.append(event) }
  }

  fileprivate func note(_ kind: DiskOperation.Kind, _ path: String) {
    let due = waiting.withLock { waiting -> [Body] in
      for index in waiting.indices
      where waiting[index].kind == kind && path.contains(waiting[index].pathPart) {
        waiting[index].left -= 1
      }
      let due = waiting.filter { $0.left == 0 }.map(\.body)
      waiting.removeAll { $0.left == 0 }
      return due
    }
    for body in due { body.call() }
  }

  func createDirectory(_ path: String) throws(SystemError) {
    note(.createDirectory, path)
    try disk.createDirectory(path)
  }

  func list(_ directory: String) throws(SystemError) -> [String] {
    note(.list, directory)
    return try disk.list(directory)
  }

  func open(_ path: String, _ mode: OpenMode) throws(SystemError) -> any File {
    note(mode == .create ? .create : .open, path)
    return InterposedFile(try disk.open(path, mode), path, self)
  }

  func rename(_ from: String, to: String) throws(SystemError) {
    note(.rename, from)
    try disk.rename(from, to: to)
  }

  func remove(_ path: String) throws(SystemError) {
    note(.remove, path)
    try disk.remove(path)
  }

  func openDirectory(_ path: String) throws(SystemError) -> any DirectoryHandle {
    note(.open, path)
    return InterposedDirectory(try disk.openDirectory(path), path, self)
  }

  func identity(_ path: String) throws(SystemError) -> FileIdentity {
    note(.identity, path)
    return try disk.identity(path)
  }
}

private final class InterposedDirectory: DirectoryHandle {
  private let directory: any DirectoryHandle
  private let path: String
  private let disk: InterposedDisk

  init(_ directory: any DirectoryHandle, _ path: String, _ disk: InterposedDisk) {
    self.directory = directory
    self.path = path
    self.disk = disk
  }

  func synchronize() throws(SystemError) {
    disk.note(.synchronizeDirectory, path)
    try directory.synchronize()
  }
}

private final class InterposedFile: ForwardingFile {
  let file: any File
  private let path: String
  private let disk: InterposedDisk

  init(_ file: any File, _ path: String, _ disk: InterposedDisk) {
    self.file = file
    self.path = path
    self.disk = disk
  }

  func read(into buffer: UnsafeMutableRawBufferPointer, at offset: UInt64) throws(SystemError)
    -> Int
  {
    disk.note(.read, path)
    return try file.read(into: buffer, at: offset)
  }

  func write(_ bytes: UnsafeRawBufferPointer, at offset: UInt64) throws(SystemError) -> Int {
    disk.note(.write, path)
    if disk.ignoresWrites.load(ordering: .relaxed) { return 0 }
    return try file.write(bytes, at: offset)
  }

  func preallocate(from offset: UInt64, count: UInt64) throws(SystemError) {
    disk.note(.preallocate, path)
    try file.preallocate(from: offset, count: count)
  }

  func truncate(to size: UInt64) throws(SystemError) {
    disk.note(.truncate, path)
    try file.truncate(to: size)
  }

  func synchronize() throws(SystemError) {
    disk.note(.synchronize, path)
    try file.synchronize()
  }

  func size() throws(SystemError) -> UInt64 {
    disk.note(.size, path)
    return try file.size()
  }

  func lock(_ kind: LockKind) throws(SystemError) -> Bool {
    disk.note(.lock, path)
    return try file.lock(kind)
  }
}
