import DendroEngine
import DendroStorage
import DendroTesting
import DendroTree
import Synchronization

#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#elseif canImport(Darwin)
  import Darwin
#endif

/// Who may use a directory, and what becomes of files that are not ours.
package enum Openers {
  package static let sweep = Sweep.cases(
    "openers",
    [
      Case("a second opener", second),
      Case("readers beside a writer that removes files", reader),
      Case("a reader changes nothing", readerChangesNothing),
      Case("files of other names", foreignFiles),
      Case("a lock file that was replaced", replacedLock),
      Case("a directory that was replaced", replacedDirectory),
      Case("a segment that was replaced", replacedSegment),
      Case("a fork", fork),
    ])

  private static func write(_ engine: Engine, _ value: Int64) -> EngineError? {
    let failure = Mutex<EngineError?>(nil)
    engine.submit(Draft(.set(Path("a"), Node(.integer(value))))) { result in
      if case .failure(let error) = result { failure.withLock { $0 = error } }
    }
    engine.pump()
    return failure.withLock { $0 }
  }

  @Sendable private static func second() throws -> String? {
    let disk = SimulatedDisk(seed: 1)
    let first = try EngineRecording.open(disk)
    do throws(EngineError) {
      _ = try EngineRecording.open(disk)
      return "was let in"
    } catch {
      guard case .storage(.locked) = error else { return "refused as \(error)" }
    }
    try first.close()
    try EngineRecording.open(disk).close()
    return nil
  }

  @Sendable private static func reader() throws -> String? {
    let disk = SimulatedDisk(seed: 1)
    let writer = try EngineRecording.open(disk)
    _ = write(writer, 0)
    try writer.checkpoint()
    let reader = try Engine.open(
      at: EngineRecording.directory, options: EngineRecording.options(),
      environment: disk.environment, mode: .readOnly)
    let names = disk.names(in: EngineRecording.directory)
    for value in 1...4 {
      _ = write(writer, Int64(value))
      try writer.checkpoint()
    }
    let lost = Set(names).subtracting(disk.names(in: EngineRecording.directory))
    if !lost.isEmpty { return "\(lost.sorted()) went below a reader" }
    guard try reader.refresh() == writer.head.lsn else { return "the reader is behind" }
    try reader.close()
    return nil
  }

  @Sendable private static func readerChangesNothing() throws -> String? {
    let disk = SimulatedDisk(seed: 1)
    let writer = try EngineRecording.open(disk)
    _ = write(writer, 1)
    // A crash in the next append, and in the middle of making two files.
    let crashed = disk.copy()
    guard let segment = crashed.segmentPaths.last else { return "no segment" }
    let end = (crashed.contents(of: segment) ?? []).lastIndex { $0 != 0 } ?? 0
    crashed.overwrite(segment, at: end + 1, with: [0xf5, 0x52, 1, 9, 9])
    try crashed.make(EngineRecording.directory + "/00000000000000000009.log.tmp", [1])
    try crashed.make(EngineRecording.directory + "/00000000000000000001.checkpoint.tmp", [1])
    let before = crashed.everything
    let reader = try Engine.open(
      at: EngineRecording.directory, options: EngineRecording.options(),
      environment: crashed.environment, mode: .readOnly)
    guard reader.head.root == writer.head.root else { return "another tree" }
    let told = Told()
    reader.submit(Draft(.set(Path("a"), Node(.integer(2)))), completion: told.completion)
    guard told.all == ["read only"], reader.head.root == writer.head.root else {
      return "a write: \(told.all)"
    }
    try reader.close()
    return crashed.everything == before ? nil : "files changed"
  }

  @Sendable private static func foreignFiles() throws -> String? {
    let disk = SimulatedDisk(seed: 1)
    let writer = try EngineRecording.open(disk)
    _ = write(writer, 1)
    try writer.close()
    let names = [
      "notes.tmp", "1.log", "1.log.tmp", "00000000000000000001.log.old",
      "00000000000000000001.log.torn-007", "dendro.lock.tmp", "0000000000000000000a.checkpoint",
      "00000000000000000001.log.tmp.tmp", ".tmp",
    ]
    for name in names { try disk.make(EngineRecording.directory + "/" + name, [7]) }
    let again = try EngineRecording.open(disk)
    if again.report.foreignFiles != names.sorted() {
      return "reported \(again.report.foreignFiles)"
    }
    for value in 2...5 {
      _ = write(again, Int64(value))
      try again.checkpoint()
    }
    try again.close()
    let left = disk.everything
    for name in names where left[name] != [7] { return "\(name) was touched" }
    return nil
  }

  /// Every write is refused from now on, and nothing comes of it.
  private static func isRefused(_ engine: Engine) -> String? {
    for value in 10...11 {
      guard let error = write(engine, Int64(value)) else { return "a write was acknowledged" }
      guard case .poisoned(cause: .ownershipLost, notKnownDurable: _) = error else {
        return "refused as \(error)"
      }
    }
    return nil
  }

  @Sendable private static func replacedLock() throws -> String? {
    let disk = SimulatedDisk(seed: 1)
    let engine = try EngineRecording.open(disk)
    if let error = write(engine, 1) { return "\(error)" }
    let lock = EngineRecording.directory + "/dendro.lock"
    try disk.rename(lock, to: EngineRecording.directory + "/elsewhere")
    try disk.make(lock)
    return isRefused(engine)
  }

  @Sendable private static func replacedDirectory() throws -> String? {
    let disk = SimulatedDisk(seed: 1)
    let engine = try EngineRecording.open(disk)
    if let error = write(engine, 1) { return "\(error)" }
    try disk.rename(EngineRecording.directory, to: "/elsewhere")
    let other = try EngineRecording.open(disk)
    if let error = write(other, 2) { return "\(error)" }
    if let problem = isRefused(engine) { return problem }
    return write(other, 3).map { "the new one: \($0)" }
  }

  @Sendable private static func replacedSegment() throws -> String? {
    let disk = SimulatedDisk(seed: 1)
    let engine = try EngineRecording.open(disk)
    if let error = write(engine, 1) { return "\(error)" }
    guard let path = disk.segmentPaths.last, let bytes = disk.contents(of: path) else {
      return "no segment"
    }
    try disk.remove(path)
    try disk.make(path, bytes)
    return isRefused(engine)
  }

  @Sendable private static func fork() throws -> String? {
    // Swift hides fork, since little is safe in the child; what is done there takes no lock.
    guard let symbol = dlsym(UnsafeMutableRawPointer(bitPattern: 0), "fork") else { return nil }
    let fork = unsafeBitCast(symbol, to: (@convention(c) () -> Int32).self)
    let disk = SimulatedDisk(seed: 1)
    let engine = try EngineRecording.open(disk)
    let draft = Draft(.set(Path("a"), Node(.integer(1))))
    let isRefused = Atomic<Bool>(false)
    let pid = fork()
    if pid == 0 {
      engine.submit(draft) {
        if case .failure(.forked) = $0 { isRefused.store(true, ordering: .relaxed) }
      }
      _exit(isRefused.load(ordering: .relaxed) ? 0 : 1)
    }
    guard pid > 0 else { return "fork failed" }
    var status: Int32 = -1
    while waitpid(pid, &status, 0) < 0, errno == EINTR {}
    if status != 0 { return "the child was not refused" }
    return write(engine, 2).map { "the parent: \($0)" }
  }
}
