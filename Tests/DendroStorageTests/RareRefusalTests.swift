import DendroPlatform
import DendroTestSupport
import DendroTesting
import Testing

@testable import DendroStorage

/// Refusals of the system that hardly ever come.
@Suite("Rare refusals")
struct RareRefusalTests {
  /// A file whose writes do nothing and say so.
  private final class IdleFile: File {
    func read(into buffer: UnsafeMutableRawBufferPointer, at offset: UInt64) throws(SystemError)
      -> Int
    { 0 }
    func write(_ bytes: UnsafeRawBufferPointer, at offset: UInt64) throws(SystemError) -> Int { 0 }
    func preallocate(from offset: UInt64, count: UInt64) throws(SystemError) {}
    func truncate(to size: UInt64) throws(SystemError) {}
    func synchronize() throws(SystemError) {}
    func size() throws(SystemError) -> UInt64 { 0 }
    func identity() throws(SystemError) -> FileIdentity { FileIdentity(device: 0, inode: 0) }
    func lock(_ kind: LockKind) throws(SystemError) -> Bool { true }
    func unlock() {}
  }

  @Test("a write of no bytes is an error, not an endless loop")
  func idleWrite() {
    #expect(
      throws: StorageError.io(operation: "write", path: "f", offset: 7, error: .inputOutput)
    ) {
      try [UInt8](repeating: 1, count: 3).withUnsafeBytes {
        try IdleFile().writeAll($0, at: 7, path: "f")
      }
    }
  }

  @Test("directories above that cannot be synchronized were not made by us")
  func foreignDirectories() throws {
    for code in [SystemError.permissionDenied, .notSupported, .invalidArgument, .inputOutput] {
      // The first call is that of the place itself, or above it, as the order may be.
      var outcomes: [Bool] = []
      for number in 1...4 {
        let disk = SimulatedDisk()
        try disk.createDirectory("/some")
        try disk.createDirectory("/some/where")
        disk.inject(.failure(of: .synchronizeDirectory, at: number, with: code.code))
        let isOpen =
          (try? DatabaseDirectory.open(
            "/some/where/db", environment: disk.environment, mode: .readWrite(create: true))) != nil
        outcomes.append(isOpen)
      }
      #expect(outcomes.contains(true), "\(code)")
      if code == .inputOutput { #expect(outcomes.contains(false)) }
    }
  }

  @Test("a reader whose lock file may not be opened is refused")
  func readersLock() throws {
    let disk = SimulatedDisk()
    try newLog(open(disk)).close()
    disk.inject(
      DiskFault(.error(EACCES), of: [.open], at: 1, isPermanent: true, pathPart: "readers.lock"))
    let error = #expect(throws: StorageError.self) { try openReadOnly(disk) }
    guard case .io(_, _, _, .permissionDenied) = error else {
      Issue.record("\(error as Any)")
      return
    }
  }

  @Test("a reader does not wait for ever for a writer that keeps readers out")
  func lockedOut() throws {
    let disk = SimulatedDisk()
    let directory = try open(disk)
    try newLog(directory).close()
    var refusal: StorageError?
    let isFree = try directory.withoutReaders { () throws(StorageError) in
      do throws(StorageError) { _ = try openReadOnly(disk) } catch { refusal = error }
    }
    #expect(isFree)
    guard case .locked(_, pid: 0) = refusal else {
      Issue.record("\(refusal as Any)")
      return
    }
    try openReadOnly(disk).close()
    directory.close()
  }

  /// A disk after a crash that spoiled the second of two records, which is not proven durable.
  private func spoiled() throws -> SimulatedDisk {
    let disk = SimulatedDisk()
    let directory = try open(disk)
    let writer = try newLog(directory)
    try writer.append(payload(0))
    let start = Int(writer.segmentByteCount)
    try writer.append(noise(700, seed: 1), durably: false)
    directory.close()
    let point = disk.crashPoint()
    let crashed = point.disk(point.allKept)
    #expect(crashed.overwrite(segmentPath(1), at: start + 300, with: [0, 0, 0, 0]))
    return crashed
  }

  @Test("a disk that fails between two attempts to set torn bytes aside keeps them")
  func failedCopy() throws {
    let crashed = try spoiled()
    crashed.inject(DiskFault(.error(ENOSPC), of: [.write], at: 1, pathPart: "torn-"))
    crashed.inject(DiskFault(.error(EIO), of: [.write], at: 2, pathPart: "torn-"))
    let error = #expect(throws: StorageError.self) { try resume(crashed) }
    guard case .io(_, _, _, .inputOutput) = error else {
      Issue.record("\(error as Any)")
      return
    }
    let (directory, _, log) = try resume(crashed.copy())
    #expect(log.entries.map(\.payload) == [payload(0)])
    let torn = try #require(log.end.torn)
    let name = try #require(log.end.tornFile)
    #expect(try directory.contents().tornFiles == [name] && torn.byteCount > 700)
    directory.close()
  }

  @Test("torn bytes for whose copy there is no room are cut, and no half copy stays")
  func noRoomForTheTornBytes() throws {
    let crashed = try spoiled()
    crashed.inject(
      DiskFault(.error(ENOSPC), of: [.write], at: 1, isPermanent: true, pathPart: "torn-"))
    let (again, resumed, log) = try resume(crashed)
    #expect(log.entries.map(\.payload) == [payload(0)])
    #expect(log.end.torn != nil && log.end.tornFile == nil)
    #expect(try again.contents().temporaries == [] && again.contents().tornFiles == [])
    try resumed.append(payload(1))
    again.close()
    #expect(try read(crashed)?.entries.map(\.payload) == [payload(0), payload(1)])
  }

  @Test("what cannot be taken ahead and not be written out either poisons")
  func preallocation() throws {
    let disk = SimulatedDisk()
    let writer = try newLog(open(disk), options: LogOptions())
    disk.inject(.failure(of: .preallocate, at: 1, with: EOPNOTSUPP, isPermanent: true))
    disk.inject(.failure(of: .write, at: 1, with: EIO))
    #expect(throws: StorageError.self) { try writer.append(payload(0)) }
    #expect(writer.poison != nil)
  }

  @Test("a probe for room after a full disk that fails otherwise poisons")
  func probe() throws {
    let disk = SimulatedDisk()
    let writer = try newLog(open(disk))
    try writer.append(payload(0))
    disk.inject(.failure(of: .write, at: 1, with: ENOSPC))
    #expect(throws: StorageError.self) { try writer.append(payload(1)) }
    try writer.cutBack()
    // Neither room that is taken ahead nor zeros that are written out instead.
    disk.inject(.failure(of: .preallocate, at: 1, with: EOPNOTSUPP))
    disk.inject(.failure(of: .write, at: 1, with: EIO))
    let error = #expect(throws: StorageError.self) { try writer.probe() }
    guard case .io("write", segmentPath(1), _, .inputOutput) = error else {
      Issue.record("\(error as Any)")
      return
    }
    #expect(writer.poison != nil)
    #expect(throws: StorageError.self) { try writer.append(payload(1)) }
    #expect(try read(disk.copy())?.entries.map(\.payload) == [payload(0)])
  }

  @Test(
    "a writer that is closed before its cut was made makes it; one that is closed takes nothing")
  func closing() throws {
    let disk = SimulatedDisk()
    let directory = try open(disk)
    let writer = try newLog(directory)
    try writer.append(payload(0))
    disk.inject(DiskFault(.partial(5, ENOSPC), of: [.write], at: 1))
    #expect(throws: StorageError.self) { try writer.append(payload(1)) }
    #expect(writer.poison == nil)
    try writer.close()
    let error = #expect(throws: StorageError.self) { try writer.append(payload(1)) }
    guard case .ownershipLost(_, "the log was closed") = error else {
      Issue.record("\(error as Any)")
      return
    }
    directory.close()
    let log = try #require(try read(disk))
    #expect(log.entries.map(\.payload) == [payload(0)])
    #expect(log.end.torn == nil && log.end.endsWithIdleRecord)
  }

  @Test("a roll without room that cannot be taken back poisons")
  func abandonedRoll() throws {
    let disk = SimulatedDisk()
    let writer = try newLog(open(disk))
    try writer.append(payload(0))
    disk.inject(.failure(of: .create, at: 1, with: ENOSPC))
    disk.inject(.failure(of: .synchronizeDirectory, at: 1, with: EIO))
    #expect(throws: StorageError.self) { try writer.roll(time: 1_704_067_200_000) }
    #expect(writer.poison != nil)
    #expect(throws: StorageError.self) { try writer.append(payload(1)) }
    #expect(try read(disk.copy())?.entries.map(\.payload) == [payload(0)])
  }

  // MARK: Tools

  @Test("a cursor reports records that do not follow, with their place")
  func links() throws {
    let disk = SimulatedDisk(seed: 3)
    let directory = try open(disk)
    let writer = try newLog(directory)
    try writer.append(payload(0))
    directory.close()
    let end = try #require(try read(disk)).end
    var stranger = end
    stranger.checksum ^= 1
    for (record, expected) in [
      (forgedRecord(behind: end, firstLSN: 3, payload: payload(1)), "first LSN 2"),
      (
        forgedRecord(behind: stranger, firstLSN: 2, payload: payload(1)),
        "previous checksum \(hexadecimal(end.checksum))"
      ),
      (
        forgedRecord(behind: end, firstLSN: 3, payload: payload(1), isShort: true), "first LSN 2"
      ),
      (
        forgedRecord(behind: stranger, firstLSN: 2, payload: payload(1), isShort: true),
        "previous checksum \(hexadecimal(UInt16(truncatingIfNeeded: end.checksum)))"
      ),
    ] {
      let forged = disk.copy()
      forged.overwrite(segmentPath(1), at: Int(end.offset), with: record)
      let problems = try LogCursorTests.scan(forged).problems
      #expect(problems.map(\.expected) == [expected])
      let text = "\(problems[0])"
      #expect(
        text.hasPrefix("\(segmentPath(1)), offset \(end.offset): expected \(expected), found"))
      var skipping = problems[0]
      skipping.skippedByteCount = 7
      #expect("\(skipping)" == text + "; 7 bytes passed over")
    }
  }

  @Test("a cursor reports a segment that follows another one, and stops at a future format")
  func segments() throws {
    func log(_ third: Int) throws -> SimulatedDisk {
      let disk = SimulatedDisk(seed: 3)
      let directory = try open(disk)
      let writer = try newLog(directory)
      for number in [0, 1, third] { try writer.append(payload(number)) }
      try writer.roll(time: 1_704_067_200_000)
      try writer.append(payload(9))
      directory.close()
      return disk
    }
    let disk = try log(2)
    let other = try #require(try log(3).contents(of: segmentPath(4)))
    disk.overwrite(segmentPath(4), at: 0, with: other)
    let problems = try LogCursorTests.scan(disk).problems
    #expect(problems.contains { $0.path == segmentPath(4) && $0.offset == 56 })

    var header = Array(other.prefix(64))
    header[8] = 9
    let checksum = header.withUnsafeBytes {
      Checksum.short(UnsafeRawBufferPointer(rebasing: $0[..<60]), seed: 0)
    }
    withUnsafeBytes(of: checksum.littleEndian) { header.replaceSubrange(60..., with: $0) }
    disk.overwrite(segmentPath(4), at: 0, with: header)
    let error = #expect(throws: StorageError.self) { try LogCursorTests.scan(disk) }
    guard case .unsupportedVersion(segmentPath(4), 9, _) = error else {
      Issue.record("\(error as Any)")
      return
    }
  }

  #if os(Linux)
    @Test("with the standard streams closed no file of ours takes their numbers")
    func closedStreams() async {
      await #expect(processExitsWith: .success) {
        var template = Array("/tmp/dendro-streams-XXXXXX".utf8CString)
        let made = template.withUnsafeMutableBufferPointer { mkdtemp($0.baseAddress!) }
        guard let made else { exit(1) }
        let path = String(cString: made)
        close(STDIN_FILENO)
        let directory = try DatabaseDirectory.open(
          path + "/db", environment: .system, mode: .readWrite(create: true))
        let writer = try LogWriter.create(
          directory, databaseID: DatabaseID(high: 1, low: 2), time: 0, options: plainOptions)
        try writer.append(payload(0))
        // Whatever else has the free number by now, no file of ours has it.
        var free = stat()
        if fstat(STDIN_FILENO, &free) == 0 {
          for name in ["00000000000000000001.log", "dendro.lock", "readers.lock"] {
            var file = stat()
            #expect(stat(path + "/db/" + name, &file) == 0)
            #expect(file.st_ino != free.st_ino)
          }
        }
        try writer.close()
        directory.close()
        for name in ["00000000000000000001.log", "dendro.lock", "readers.lock"] {
          unlink(path + "/db/" + name)
        }
        rmdir(path + "/db")
        rmdir(path)
      }
    }
  #endif
}
