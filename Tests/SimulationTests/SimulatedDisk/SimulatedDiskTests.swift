import DendroStorage
import DendroTesting
import Testing

/// The disk proves itself: every state that the model allows can be reached, and none besides.
@Suite struct SimulatedDiskTests {
  let disk = SimulatedDisk(seed: 1)

  @Test func everythingOfAWriteThatWasNotSynchronizedMayBeLost() throws {
    let file = try disk.make("/f")
    try disk.synchronizeDirectory("/")
    try file.put("abc")
    var options = CrashEnumeration()
    options.rests = [.absent, .extended]
    #expect(
      disk.crashPoint().outcomes(options) { $0.text("/f") }
        == ["", "a", "ab", "abc", "...", "a..", "ab."])
  }

  @Test func whatWasTornOffMayBeGarbage() throws {
    let file = try disk.make("/f")
    try disk.synchronizeDirectory("/")
    try file.put("abcdefgh")
    let point = disk.crashPoint()
    let torn = CrashState([.torn(count: 3, rest: .garbage(seed: 7))])
    let bytes = try #require(point.disk(torn).contents(of: "/f"))
    #expect(bytes.count == 8)
    #expect(bytes.prefix(3).elementsEqual("abc".utf8))
    #expect(!bytes.dropFirst(3).elementsEqual("defgh".utf8))
    #expect(bytes == point.disk(torn).contents(of: "/f"))
  }

  @Test func aSynchronizedFileKeepsItsContentAndSize() throws {
    let file = try disk.make("/f")
    try disk.synchronizeDirectory("/")
    try file.put("abc")
    try file.preallocate(from: 3, count: 2)
    try file.synchronize()
    #expect(disk.crashPoint().outcomes { $0.text("/f") } == ["abc.."])
    #expect(disk.crashPoint().pendingCount == 0)
  }

  @Test func aSynchronizedFileIsLostWithItsEntry() throws {
    let file = try disk.make("/f")
    try file.put("abc")
    try file.synchronize()
    #expect(disk.crashPoint().outcomes { $0.text("/f") } == [nil, "abc"])
    try disk.synchronizeDirectory("/")
    #expect(disk.crashPoint().outcomes { $0.text("/f") } == ["abc"])
  }

  @Test func aSynchronizedDirectoryDoesNotSpeakForTheContent() throws {
    let file = try disk.make("/f")
    try file.put("ab")
    try disk.synchronizeDirectory("/")
    var options = CrashEnumeration()
    options.rests = [.absent]
    #expect(disk.crashPoint().outcomes(options) { $0.text("/f") } == ["", "a", "ab"])
  }

  @Test func aDirectoryThatIsLostTakesAllWithIt() throws {
    try disk.createDirectory("/d")
    let file = try disk.make("/d/f")
    try file.put("abc")
    try file.synchronize()
    try disk.synchronizeDirectory("/d")
    #expect(disk.crashPoint().outcomes { $0.text("/d/f") } == [nil, "abc"])
    try disk.synchronizeDirectory("/")
    #expect(disk.crashPoint().outcomes { $0.text("/d/f") } == ["abc"])
  }

  @Test func writesReachTheDiskInAnyOrder() throws {
    let file = try disk.make("/f")
    try file.put("------")
    try file.synchronize()
    try disk.synchronizeDirectory("/")
    try file.put("a", at: 0)
    try file.put("b", at: 2)
    try file.put("c", at: 4)
    let expected = Set<String?>(
      (0..<8).map { mask in
        String(
          [
            mask & 1 != 0 ? "a" : "-", "-", mask & 2 != 0 ? "b" : "-", "-",
            mask & 4 != 0 ? "c" : "-", "-",
          ].joined())
      })
    var options = CrashEnumeration()
    options.rests = [.absent]
    #expect(disk.crashPoint().outcomes(options) { $0.text("/f") } == expected)
  }

  @Test(arguments: [512, 4096]) func everySubsetOfTheSectorsIsReached(size: Int) throws {
    let file = try disk.make("/f")
    try disk.synchronizeDirectory("/")
    // Ten sectors, of which the first and the last are touched in part.
    let bytes = [UInt8](repeating: 1, count: size * 9)
    let count = try bytes.withUnsafeBytes { try file.write($0, at: UInt64(size / 2)) }
    #expect(count == bytes.count)
    var options = CrashEnumeration()
    options.sectorSizes = [size]
    options.tornByteStride = .max
    options.rests = [.absent]
    let masks = disk.crashPoint().outcomes(options) { disk -> Int in
      let bytes = disk.contents(of: "/f")!
      return (0..<10).reduce(0) { mask, sector in
        let place = sector * size + (sector == 0 ? size / 2 : 0)
        return place < bytes.count && bytes[place] == 1 ? mask | 1 << sector : mask
      }
    }
    #expect(masks == Set(0..<1024))
  }

  @Test func sectorsAreWholeOrAbsent() throws {
    let file = try disk.make("/f")
    try disk.synchronizeDirectory("/")
    let bytes = [UInt8](repeating: 1, count: 200 * 512)
    _ = try bytes.withUnsafeBytes { try file.write($0, at: 0) }
    let state = CrashState([.sectors(size: 512, mask: 0xf0f0_1234_5678_9abc, extends: true)])
    let content = try #require(disk.crashPoint().disk(state).contents(of: "/f"))
    #expect(content.count == bytes.count)
    var kept: [Bool] = []
    for sector in 0..<200 {
      let values = Set(content[sector * 512..<(sector + 1) * 512])
      #expect(values.count == 1)
      kept.append(values == [1])
    }
    #expect(
      (0..<64).allSatisfy { kept[$0] == (0xf0f0_1234_5678_9abc as UInt64 >> UInt64($0) & 1 == 1) })
    #expect(Set(kept[64...]).count == 2)
  }

  @Test func aTruncationMayBeLost() throws {
    let file = try disk.make("/f")
    try file.put("abcdef")
    try file.synchronize()
    try disk.synchronizeDirectory("/")
    try file.truncate(to: 2)
    #expect(disk.crashPoint().outcomes { $0.text("/f") } == ["ab", "abcdef"])
    try file.put("X", at: 2)
    var options = CrashEnumeration()
    options.rests = [.absent, .extended]
    #expect(
      disk.crashPoint().outcomes(options) { $0.text("/f") }
        == ["ab", "abcdef", "abX", "abXdef", "ab."])
    try file.synchronize()
    #expect(disk.crashPoint().outcomes(options) { $0.text("/f") } == ["abX"])
  }

  @Test func aPreallocationMayBeLost() throws {
    let file = try disk.make("/f")
    try file.synchronize()
    try disk.synchronizeDirectory("/")
    try file.preallocate(from: 0, count: 4)
    #expect(disk.crashPoint().outcomes { $0.text("/f") } == ["", "...."])
    try file.put("a", at: 0)
    var options = CrashEnumeration()
    options.rests = [.absent]
    #expect(disk.crashPoint().outcomes(options) { $0.text("/f") } == ["", "a", "....", "a..."])
  }

  @Test func aRenameIsThereOrNotOrHalfWithOldOrNewContent() throws {
    let old = try disk.make("/f")
    try old.put("old")
    try old.synchronize()
    try disk.synchronizeDirectory("/")
    let new = try disk.make("/f.tmp")
    try new.put("n")
    try disk.rename("/f.tmp", to: "/f")
    struct Pair: Hashable { let file: String?, temporary: String? }
    let seen = disk.crashPoint().outcomes {
      Pair(file: $0.text("/f"), temporary: $0.text("/f.tmp"))
    }
    #expect(
      seen == [
        Pair(file: "old", temporary: nil),  // all lost
        Pair(file: "old", temporary: ""), Pair(file: "old", temporary: "n"),  // not renamed
        Pair(file: "", temporary: nil), Pair(file: "n", temporary: nil),  // renamed
        Pair(file: "n", temporary: "n"),  // both names
      ])
    try new.synchronize()
    try disk.synchronizeDirectory("/")
    #expect(disk.crashPoint().outcomes { $0.text("/f") } == ["n"])
    #expect(disk.crashPoint().outcomes { $0.names(in: "/") } == [["f"]])
  }

  @Test func aRenameBetweenDirectoriesIsSynchronizedInBoth() throws {
    try disk.createDirectory("/a")
    try disk.createDirectory("/b")
    _ = try disk.make("/a/f")
    try disk.synchronizeDirectory("/a")
    try disk.synchronizeDirectory("/")
    try disk.rename("/a/f", to: "/b/f")
    struct Pair: Hashable { let a: Bool, b: Bool }
    let look = { (disk: SimulatedDisk) in Pair(a: disk.exists("/a/f"), b: disk.exists("/b/f")) }
    #expect(
      disk.crashPoint().outcomes(look: look)
        == [Pair(a: true, b: false), Pair(a: false, b: true), Pair(a: true, b: true)])
    try disk.synchronizeDirectory("/b")
    #expect(
      disk.crashPoint().outcomes(look: look) == [Pair(a: false, b: true), Pair(a: true, b: true)])
    try disk.synchronizeDirectory("/a")
    #expect(disk.crashPoint().outcomes(look: look) == [Pair(a: false, b: true)])
  }

  @Test func aRemovalMayBeLostUntilItsDirectoryIsSynchronized() throws {
    for name in ["/a", "/b", "/c"] { _ = try disk.make(name) }
    try disk.synchronizeDirectory("/")
    for name in ["/a", "/b", "/c"] { try disk.remove(name) }
    // Any subset of the three, not only the prefixes.
    #expect(disk.crashPoint().outcomes { $0.names(in: "/") }.count == 8)
    try disk.synchronizeDirectory("/")
    #expect(disk.crashPoint().outcomes { $0.names(in: "/") } == [[]])
  }

  @Test(arguments: DiskFault.Pages.allCases)
  func afterAFailedSynchronizeNoLaterOneTells(pages: DiskFault.Pages) throws {
    let file = try disk.make("/f")
    try file.put("old")
    try file.synchronize()
    try disk.synchronizeDirectory("/")
    try file.put("new")
    disk.inject(.failedSynchronize(at: 1, pages: pages))
    #expect(throws: SystemError.inputOutput) { try file.synchronize() }
    #expect(try file.get(9) == (pages == .kept ? "new" : "old"))
    try file.synchronize()
    #expect(disk.crashPoint().outcomes { $0.text("/f") }.isSuperset(of: ["old", "new"]))
    try file.put("!", at: 3)
    try file.synchronize()
    #expect(disk.crashPoint().outcomes { $0.text("/f") }.isSuperset(of: ["old!", "new!"]))
    #expect(disk.crashPoint().outcomes { $0.text("/f")!.last } == ["!"])
  }

  @Test func eachCallThatChangesIsACrashPoint() throws {
    #expect(disk.crashPoints().count == 1)
    let file = try disk.make("/f")
    try file.put("a")
    _ = try file.get(1)
    _ = try disk.list("/")
    try file.synchronize()
    try disk.synchronizeDirectory("/")
    #expect(disk.crashPoints().map(\.pendingCount) == [0, 1, 2, 1, 0])
    #expect(disk.crashPoints().map(\.operationCount) == [0, 1, 2, 5, 7])
    #expect(
      disk.trace.map(\.description) == [
        "create /f", "write /f at 0, 1 bytes", "read /f at 0, 1 bytes", "list /", "synchronize /f",
        "open /", "synchronizeDirectory /",
      ])
  }

  @Test func aCrashedDiskIsADiskOfItsOwn() throws {
    let file = try disk.make("/f")
    try file.put("abc")
    #expect(try file.lock(.exclusive))
    let crashed = disk.crashPoint().disk(CrashState([.kept, .kept]))
    let again = try crashed.open("/f", .readWrite)
    #expect(try again.lock(.exclusive))
    try again.put("X", at: 0)
    #expect(disk.text("/f") == "abc")
    // On the crashed disk, what had survived is durable.
    #expect(crashed.crashPoint().disk(CrashState([])).text("/f") == "abc")
    #expect(crashed.text("/f") == "Xbc")
  }

  @Test func aStateIsReadBackFromItsDescription() throws {
    let file = try disk.make("/f")
    try file.put(String(repeating: "x", count: 5000))
    try disk.rename("/f", to: "/g")
    try file.truncate(to: 10)
    let point = disk.crashPoint()
    var options = CrashEnumeration()
    options.tornByteStride = 100
    point.forEachState(options) { #expect(CrashState($0.description) == $0) }
    var random = SeededRandomness(seed: 3)
    for _ in 0..<1000 {
      let state = point.randomState(using: &random)
      #expect(CrashState(state.description) == state)
    }
    for bad in ["x", "k,", "t", "t-1", "t1~", "s512", "s0:1", "k,dd", "t1~2+", "s512:1:2"] {
      #expect(CrashState(bad)?.description != bad || bad == "k,")
    }
  }

  /// Every state, listed or drawn, of random workloads holds to the model, which a second and much
  /// simpler one judges: for each byte and each name the values that it may have.
  @Test(arguments: 0..<200 as Range<UInt64>) func noStateIsIllegal(seed: UInt64) throws {
    var random = SeededRandomness(seed: seed)
    let disk = SimulatedDisk(seed: seed)
    var model = LegalDisk()
    for _ in 0..<Int.random(in: 1...25, using: &random) {
      try model.step(on: disk, using: &random)
    }
    let point = disk.crashPoint()
    var options = CrashEnumeration()
    options.tornByteStride = 7
    options.rests = [.absent, .extended]
    options.seed = seed
    try point.forEachState(options) { state in
      let problem = model.problem(of: point.disk(state))
      try #require(problem == nil, "seed \(seed), state \(state): \(problem!)")
    }
    for _ in 0..<200 {
      let state = point.randomState(using: &random)
      let problem = model.problem(of: point.disk(state), allowingGarbage: true)
      try #require(problem == nil, "seed \(seed), state \(state): \(problem!)")
    }
    #expect(disk.text("/a") == point.disk(point.allKept).text("/a"))
  }

  @Test func sameSeedSameDisks() throws {
    func run() throws -> [String] {
      var random = SeededRandomness(seed: 9)
      let disk = SimulatedDisk(seed: 9)
      var model = LegalDisk()
      for _ in 0..<30 { try model.step(on: disk, using: &random) }
      let point = disk.crashPoint()
      return disk.trace.map(\.description)
        + (0..<50).map { _ in
          let state = point.randomState(using: &random)
          let crashed = point.disk(state)
          return "\(state) \(crashed.names(in: "/").map { "\($0)=\(crashed.text("/" + $0)!)" })"
        }
    }
    #expect(try run() == run())
  }
}

extension CrashPoint {
  fileprivate func outcomes<T: Hashable>(look: (SimulatedDisk) -> T) -> Set<T> {
    outcomes(CrashEnumeration(), look)
  }
}
