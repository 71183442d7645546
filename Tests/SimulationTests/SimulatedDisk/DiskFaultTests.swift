import DendroPlatform
import DendroStorage
import DendroTesting
import Testing

/// Each fault strikes the call that it is meant for, and no other.
@Suite struct DiskFaultTests {
  let disk = SimulatedDisk(seed: 1)

  @Test func theCallOfAKindFailsOnce() throws {
    let file = try disk.make("/f")
    disk.inject(.failure(of: .write, at: 2, with: EIO))
    try file.put("a")
    _ = try file.size()
    #expect(throws: SystemError.inputOutput) { try file.put("b") }
    #expect(disk.text("/f") == "a")
    try file.put("c")
    #expect(disk.text("/f") == "c")
    #expect(disk.trace.map(\.errno) == [0, 0, 0, EIO, 0])
  }

  @Test func theCallOfAKindFailsForGood() throws {
    let file = try disk.make("/f")
    disk.inject(.failure(of: .write, at: 2, with: EROFS, isPermanent: true))
    try file.put("a")
    #expect(throws: SystemError.readOnly) { try file.put("b") }
    #expect(throws: SystemError.readOnly) { try file.put("b") }
    disk.removeFaults()
    try file.put("b")
  }

  /// Each kind of call can be made to fail, as the first of its kind and as the n-th of all.
  @Test(arguments: DiskOperation.Kind.allCases) func everyKindFails(kind: DiskOperation.Kind) throws
  {
    func run(on disk: SimulatedDisk) throws {
      try disk.createDirectory("/d")
      let file = try disk.open("/d/f", .create)
      _ = try disk.open("/d/f", .read)
      _ = try file.lock(.exclusive)
      try file.preallocate(from: 0, count: 10)
      try file.put("abc")
      try file.truncate(to: 3)
      try file.synchronize()
      _ = try file.size()
      _ = try file.get(3)
      try disk.rename("/d/f", to: "/d/g")
      try disk.synchronizeDirectory("/d")
      _ = try disk.list("/d")
      _ = try disk.identity("/d/g")
      // A disk that refuses has no watch, and throws nothing.
      if disk.watch("/d") == nil { throw SystemError(EPERM) }
      try disk.remove("/d/g")
    }
    let probe = SimulatedDisk()
    try run(on: probe)
    let number = try #require(probe.trace.firstIndex { $0.kind == kind }) + 1
    for fault in [
      DiskFault.failure(of: kind, at: 1, with: EPERM), .failure(at: number, with: EPERM),
    ] {
      let disk = SimulatedDisk()
      disk.inject(fault)
      #expect(throws: SystemError(EPERM), "\(fault)") { try run(on: disk) }
      #expect(disk.trace.last?.kind == kind)
      #expect(disk.trace.last?.isCrashPoint == false)
    }
  }

  @Test func shortCountsAndInterruptions() throws {
    let file = try disk.make("/f")
    disk.inject(DiskFault(.short(2), of: [.write], at: 1))
    let bytes = Array("abcdef".utf8)
    #expect(try bytes.withUnsafeBytes { try file.write($0, at: 0) } == 2)
    #expect(disk.text("/f") == "ab")
    try file.put("abcdef")
    disk.inject(DiskFault(.short(3), of: [.read], at: 1))
    #expect(try file.get(6) == "abc")
    #expect(try file.get(6) == "abcdef")
    disk.inject(.failure(of: .read, at: 1, with: EINTR))
    #expect(throws: SystemError.interrupted) { try file.get(1) }
    #expect(try file.get(1) == "a")
    // A count of nothing would be an end of file, or a loop for ever.
    disk.inject(DiskFault(.short(0), of: [.read], at: 1))
    #expect(try file.get(6) == "a")
  }

  @Test func aFailedWriteMayHaveWrittenAPart() throws {
    let file = try disk.make("/f")
    disk.inject(DiskFault(.partial(2, EIO), of: [.write], at: 1))
    #expect(throws: SystemError.inputOutput) { try file.put("abc") }
    #expect(disk.text("/f") == "ab")
  }

  @Test func faultsOnOnePathOnly() throws {
    let f = try disk.make("/f.log")
    let g = try disk.make("/g.dat")
    disk.inject(DiskFault(.error(EIO), of: [.write], at: 1, pathPart: ".dat"))
    try f.put("a")
    #expect(throws: SystemError.inputOutput) { try g.put("a") }
  }

  @Test func outOfSpace() throws {
    let file = try disk.make("/f")
    disk.freeSpace = 4
    let bytes = Array("abcdef".utf8)
    #expect(try bytes.withUnsafeBytes { try file.write($0, at: 0) } == 4)
    #expect(throws: SystemError.noSpace) { try file.put("ef", at: 4) }
    #expect(throws: SystemError.noSpace) { try file.preallocate(from: 4, count: 1) }
    #expect(throws: SystemError.noSpace) { try disk.make("/g") }
    #expect(throws: SystemError.noSpace) { try disk.createDirectory("/d") }
    // What is there can be written again.
    try file.put("ABCD")
    try file.truncate(to: 1)
    #expect(disk.freeSpace == 3)
    let other = try disk.make("/g")
    try other.put("xyz")
    try disk.remove("/g")
    #expect(disk.freeSpace == 0, "the handle still holds it")
    withExtendedLifetime(other) {}
    try disk.remove("/f")
    disk.freeSpace = nil
    try file.put("abcdef")
  }

  @Test func spaceComesBackWithTheLastHandle() throws {
    disk.freeSpace = 10
    var file: (any File)? = try disk.make("/f")
    try file!.put("abc")
    try disk.remove("/f")
    #expect(disk.freeSpace == 7)
    file = nil
    #expect(disk.freeSpace == 10)
  }

  @Test func aDisconnectedDiskRefusesAll() throws {
    let file = try disk.make("/f")
    try file.put("abc")
    disk.disconnect()
    #expect(throws: SystemError.inputOutput) { try file.get(1) }
    #expect(throws: SystemError.inputOutput) { try disk.list("/") }
    #expect(disk.crashPoint().disk(disk.crashPoint().allKept).text("/f") == "abc")
  }
}
