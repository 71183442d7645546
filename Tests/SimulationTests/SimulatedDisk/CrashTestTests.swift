import DendroStorage
import DendroTesting
import Testing

/// What apps test themselves with.
@Suite struct CrashTestTests {
  private struct Wrong: Error {}

  /// Writes a byte for each fact, and acknowledges it.
  private static func program(_ disk: SimulatedDisk, synchronizes: Bool) throws {
    let file = try disk.open("/facts", .create)
    try disk.synchronizeDirectory("/")
    for fact in 1...3 as ClosedRange<UInt8> {
      let result = [fact].withUnsafeBytes { bytes in
        Result { () throws(SystemError) in try file.write(bytes, at: UInt64(fact) - 1) }
      }
      _ = try result.get()
      if synchronizes { try file.synchronize() }
      disk.acknowledge("\(fact)")
    }
  }

  private static func check(_ crash: Crash) throws {
    let found = crash.disk().contents(of: "/facts") ?? []
    for fact in crash.acknowledged where !found.contains(UInt8(fact)!) { throw Wrong() }
  }

  @Test("a disk serves so many calls, and then none; what fails leaves no trace")
  func disconnecting() throws {
    let disk = SimulatedDisk(seed: 3)
    #expect(disk.seed == 3)
    disk.disconnect(after: 2)
    try disk.createDirectory("/a")
    #expect(throws: SystemError.noSuchFile) { try disk.open("/b", .read) }
    #expect(!disk.isDisconnected)
    for _ in 0..<2 { #expect(throws: SystemError.inputOutput) { try disk.createDirectory("/c") } }
    #expect(disk.isDisconnected)
    #expect(disk.operationCount == 2)
    disk.acknowledge("late")
    #expect(disk.acknowledged == ["late"])
    let crashes = Array(disk.crashes())
    #expect(crashes.first?.acknowledged == [] && crashes.last?.acknowledged == ["late"])

    let now = SimulatedDisk()
    now.disconnect(after: -1)
    #expect(throws: SystemError.inputOutput) { try now.list("/") }
  }

  @Test("an acknowledgement between two changes counts at the crash")
  func acknowledgements() throws {
    let disk = SimulatedDisk(seed: 1)
    try Self.program(disk, synchronizes: true)
    let crashes = Array(disk.crashes())
    // Before anything, after the creation, the directory's synchronize, and each write with its own. The second
    // operation opens the directory, which changes nothing.
    #expect(Set(crashes.map(\.operationCount)) == [0, 1, 3, 4, 5, 6, 7, 8, 9])
    for crash in crashes {
      let expected = max(0, (crash.operationCount - 3) / 2)
      #expect(crash.acknowledged == ["1", "2", "3"].prefix(expected).map { $0 }, "\(crash)")
      try Self.check(crash)
      #expect(crash.reproduction == "DENDRO_CRASH=\(crash)")
    }
    #expect(crashes.contains { $0.explanation.contains("write 1 bytes at 2 of inode") })

    let hasty = SimulatedDisk(seed: 1)
    try Self.program(hasty, synchronizes: false)
    #expect(throws: Wrong.self) { for crash in hasty.crashes() { try Self.check(crash) } }
  }

  @Test("every call of a program is its last one once")
  func everyCall() async throws {
    var runs: [Int] = []
    var operations: Set<Int> = []
    let count = try await CrashTest(seed: 1).run {
      try Self.program($0, synchronizes: true)
      runs.append($0.operationCount)
    } check: {
      operations.insert($0.operationCount)
      try Self.check($0)
    }
    #expect(runs == [9], "the others ended before")
    #expect(operations == Set(0...9))
    #expect(count >= 10)

    let failure = await #expect(throws: CrashTest.Failure.self) {
      try await CrashTest(seed: 7).run {
        try Self.program($0, synchronizes: false)
      } check: {
        try Self.check($0)
      }
    }
    let crash = try #require(failure?.crash)
    #expect(failure?.underlyingError is Wrong)
    let only = try #require(CrashTest.Reproduction("\(crash)"))
    await #expect(throws: CrashTest.Failure.self) {
      try await CrashTest(seed: 0).run(only: only) {
        try Self.program($0, synchronizes: false)
      } check: {
        #expect("\($0)" == "\(crash)")
        try Self.check($0)
      }
    }
  }

  @Test("an error while the disk works is the program's own")
  func ownErrors() async {
    await #expect(throws: Wrong.self) {
      try await CrashTest(seed: 1).run { disk in
        try disk.createDirectory("/a")
        throw Wrong()
      } check: { _ in
      }
    }
  }

  @Test("a crash as text")
  func text() throws {
    let whole = try #require(CrashTest.Reproduction("18446744073709551615/57/k,d,t17+"))
    #expect(whole.seed == .max && whole.operationCount == 57)
    #expect(whole.state == CrashState([.kept, .dropped, .torn(count: 17, rest: .extended)]))
    #expect(CrashTest.Reproduction("1/0/-")?.state == CrashState([]))
    let open = try #require(CrashTest.Reproduction("1/2"))
    #expect(open.state == nil)
    for text in ["", "1", "1/", "x/1", "1/-2", "1/2/x", "1/2/k/k", "-1/2", "1/2/t"] {
      #expect(CrashTest.Reproduction(text) == nil, "\(text)")
    }
  }
}
