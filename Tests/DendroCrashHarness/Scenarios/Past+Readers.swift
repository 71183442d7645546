import DendroEngine
import DendroStorage
import DendroTesting
import DendroTree

// Readers of other processes that stay: followers of the head, and archives.

extension Past {
  private static func follower(_ disk: SimulatedDisk) throws(EngineError) -> Engine {
    try Engine.open(
      at: EngineRecording.directory, options: EngineRecording.options(),
      environment: disk.environment, mode: .following)
  }

  private static func readersLock(_ disk: SimulatedDisk) throws -> any File {
    try disk.open(EngineRecording.directory + "/readers.lock", .read)
  }

  /// While files are removed, a follower cannot read the directory anew; it has to do so later.
  @Sendable static func followerLockedOut() throws {
    let disk = SimulatedDisk(seed: 1)
    let writer = try EngineRecording.open(disk)
    let follower = try follower(disk)
    for number in 1...3 as ClosedRange<Int64> {
      try writer.put("n", .integer(number))
      try writer.checkpoint()
    }
    try writer.purgeHistory()
    let lock = try readersLock(disk)
    try require(try lock.lock(.exclusive), "the lock of the readers is held")
    try requireError("it was read without a lock") { () throws(EngineError) in
      try follower.refresh()
    }
    lock.unlock()
    try follower.refresh()
    let found = follower.integer(at: "n")
    try require(found == 3, "it stays at \(found as Any)")
  }

  /// A segment that is listed, and gone when it is opened.
  @Sendable static func followerOfVanished() throws {
    let disk = SimulatedDisk(seed: 1)
    let writer = try EngineRecording.open(disk)
    let follower = try follower(disk)
    for number in 1...3 as ClosedRange<Int64> {
      try writer.put("n", .integer(number))
      try writer.roll()
    }
    disk.inject(
      DiskFault(.error(SystemError.noSuchFile.code), of: [.open], at: 1, pathPart: "2.log"))
    try follower.refresh()
    let found = follower.integer(at: "n")
    try require(found == 3, "it stays at \(found as Any)")
  }

  /// A follower that has ended by an error keeps no log from being removed.
  @Sendable static func followerFailed() throws {
    let disk = SimulatedDisk(seed: 1)
    let writer = try EngineRecording.open(disk)
    try writer.put("n", .integer(1))
    let follower = try follower(disk)
    try put(2...9, writer)
    try writer.close()
    let path = disk.segmentPaths[0]
    let lock = try readersLock(disk)
    let size = disk.contents(of: path)?.count ?? 0
    disk.overwrite(path, at: size / 2, with: Array(repeating: 0xA5, count: 40))
    try requireError("the damage was not found") { () throws(EngineError) in
      // The bytes might be a record that is being written.
      for _ in 1...4 { try follower.refresh() }
    }
    let position = try lock.lockedByte(in: 0..<UInt64(Int64.max))
    try require(position == nil, "the log is kept from write \(position ?? 0) on")
  }

  // MARK: Archives

  private static func extendArchive(_ disk: SimulatedDisk) throws(StorageError) {
    let source = try DatabaseDirectory.open(
      EngineRecording.directory, environment: disk.environment, mode: .following)
    let archive = try LogArchive(of: source, at: "/archive")
    defer { archive.close() }
    _ = try archive.extend()
  }

  /// A record in the last segment that is damaged, and that the one behind it proves durable.
  @Sendable static func archiveOfDamaged() throws {
    let disk = SimulatedDisk(seed: 1)
    let writer = try EngineRecording.open(disk)
    try put(1...9, writer)
    try writer.close()
    let path = disk.segmentPaths[0]
    let size = disk.contents(of: path)?.count ?? 0
    disk.flipBit(size / 2 * 8, of: path)
    try requireError("the log was taken to end there") { () throws(StorageError) in
      try extendArchive(disk)
    }
  }

  /// What an open archive has not copied yet stays.
  @Sendable static func archiveBehind() throws {
    let disk = SimulatedDisk(seed: 1)
    let writer = try EngineRecording.open(disk)
    try put(1...3, writer)
    let source = try DatabaseDirectory.open(
      EngineRecording.directory, environment: disk.environment, mode: .following)
    let archive = try LogArchive(of: source, at: "/archive")
    defer { archive.close() }
    _ = try archive.extend()
    try put(4...9, writer)
    try requireError("the rest was purged") { () throws(EngineError) in
      try writer.purgeHistory()
    }
    let last = try archive.extend().lastLSN
    try require(last == LogSequenceNumber(9), "the archive ends with write \(last)")
    try writer.purgeHistory()
    try writer.close()
  }

  /// A database that continues otherwise from a state that is in the archive.
  @Sendable static func archiveOfOther() throws {
    let disk = SimulatedDisk(seed: 1)
    let writer = try EngineRecording.open(disk)
    try put(1...9, writer)
    try writer.close()
    let before = disk.everything
    try extendArchive(disk)
    let path = disk.segmentPaths[0]
    // The same segment with other writes behind its header.
    disk.erase(path)
    try disk.make(path, Array((before.values.max { $0.count < $1.count } ?? []).prefix(64)))
    let other = try EngineRecording.open(disk)
    try put(21...29, other)
    try other.close()
    try requireError("it was taken for the same") { () throws(StorageError) in
      try extendArchive(disk)
    }
  }
}
