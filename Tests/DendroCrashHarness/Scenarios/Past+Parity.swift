import DendroEngine
import DendroStorage
import DendroTesting
import DendroTree

/// Parity of the files of backups and archives: it mends what was damaged, and changes nothing else.
extension Past {
  static let parity = [
    Scenario("parity of a damaged file", parityMends),
    Scenario("parity that is damaged like its file", parityDamaged),
    Scenario("parity of records that were taken back", parityOfTakenBack),
    Scenario("parity of bytes that have changed since", parityOfOther),
    Scenario("parity of an archive that was damaged before it goes on", parityBefore),
    Scenario("parity of a database that is purged", parityOfPurged),
  ]

  /// Text that LZ4 does not make shorter.
  private static func text(_ count: Int, _ seed: UInt64) -> Scalar {
    var state = seed
    return .string(
      String(
        decoding: (0..<count).map { _ -> UInt8 in
          state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
          return 0x30 + UInt8(truncatingIfNeeded: state >> 58)
        }, as: UTF8.self))
  }

  private static func extend(_ disk: SimulatedDisk) throws(StorageError) {
    let source = try DatabaseDirectory.open(
      EngineRecording.directory, environment: disk.environment, mode: .following)
    let archive = try LogArchive(of: source, at: "/archive")
    defer { archive.close() }
    _ = try archive.extend()
  }

  private static func directory(
    _ disk: SimulatedDisk, _ path: String = "/archive"
  ) throws(StorageError) -> DatabaseDirectory {
    try DatabaseDirectory.open(path, environment: disk.environment, mode: .readOnly)
  }

  /// An archive of a segment with some blocks; the path of its copy.
  private static func archived(_ disk: SimulatedDisk) throws -> String {
    let writer = try EngineRecording.open(disk)
    for number in 0..<9 { try writer.put("n\(number)", text(4000, UInt64(number))) }
    try writer.close()
    try extend(disk)
    return try segment(disk)
  }

  /// The largest segment of the archive.
  private static func segment(_ disk: SimulatedDisk) throws -> String {
    let paths = disk.names(in: "/archive").filter { $0.hasSuffix(".log") }
      .map { "/archive/" + $0 }
    guard
      let path = paths.max(by: {
        (disk.contents(of: $0)?.count ?? 0) < (disk.contents(of: $1)?.count ?? 0)
      })
    else { throw Violation("no segment") }
    return path
  }

  private static func states(_ disk: SimulatedDisk) throws -> [Mending.State] {
    let directory = try directory(disk)
    defer { directory.close() }
    return try directory.mendings().map(\.state)
  }

  @Sendable private static func parityMends() throws {
    let disk = SimulatedDisk(seed: 1)
    let path = try archived(disk)
    disk.flipBit(5000 * 8, of: path)
    let directory = try directory(disk)
    defer { directory.close() }
    let salvage = try Salvage(directory)
    try require(salvage.mendings.contains { $0.state == .mends }, "not mended")
    try require(try salvage.rehearse(salvage.plan).isWhole, "a write is lost")
  }

  /// The parity block of the damaged block is damaged, too.
  @Sendable private static func parityDamaged() throws {
    let disk = SimulatedDisk(seed: 1)
    let path = try archived(disk)
    let size = disk.contents(of: path + ".parity")?.count ?? 0
    for bit in [size * 8 - 1, (size - 4096) * 8] {
      let disk = disk.copy()
      disk.flipBit(5000 * 8, of: path)
      disk.flipBit(bit, of: path + ".parity")
      let states = try states(disk)
      try require(!states.contains(.mends), "mended by damaged parity")
      try require(states.contains(.exceeded), "said to be \(states)")
    }
  }

  @Sendable private static func parityOfTakenBack() throws {
    var callCount = 0
    var isComplete = false
    while !isComplete {
      let disk = SimulatedDisk(seed: 1)
      try takeBack(disk)
      disk.disconnect(after: callCount)
      do throws(StorageError) {
        try extend(disk)
        isComplete = true
      } catch {}
      let states = try states(disk.copy())
      try require(
        states.allSatisfy { $0 == .good || $0 == .stale }, "after \(callCount) calls \(states)")
      callCount += 1
    }
  }

  /// Leaves an archive whose last record the writer has replaced.
  private static func takeBack(_ disk: SimulatedDisk) throws {
    _ = try archived(disk)
    do {
      let writer = try EngineRecording.open(disk)
      try writer.put("lost", text(9000, 77))
      try extend(disk)
      let directory = try directory(disk, EngineRecording.directory)
      defer { directory.close() }
      guard let name = try directory.contents().segments.last,
        let record = try SegmentOutline(name, in: directory).restarts.last
      else { throw Violation("no record") }
      try disk.open(directory.path(of: name), .readWrite).truncate(to: record.offset)
    }
    let writer = try EngineRecording.open(disk)
    try writer.put("kept", text(9500, 78))
    try writer.close()
  }

  /// Records stand in place of those for which the parity was made, and something else is damaged.
  @Sendable private static func parityOfOther() throws {
    let disk = SimulatedDisk(seed: 1)
    try takeBack(disk)
    let path = try segment(disk)
    let old = disk.contents(of: path + ".parity") ?? []
    try extend(disk)
    disk.erase(path + ".parity")
    try disk.make(path + ".parity", old)
    for place in [nil, 70, 5000] as [Int?] {
      let disk = disk.copy()
      if let place { disk.flipBit(place * 8, of: path) }
      let states = try states(disk)
      try require(states.contains(.other), "damaged at \(place ?? 0): \(states)")
    }
  }

  @Sendable private static func parityBefore() throws {
    let disk = SimulatedDisk(seed: 1)
    let path = try archived(disk)
    let writer = try EngineRecording.open(disk)
    disk.flipBit(2000 * 8, of: path)
    try writer.roll()
    try requireError("the parity that mends it was replaced") { () throws(StorageError) in
      try extend(disk)
    }
    try require(try states(disk).contains(.mends), "not mended any more")
    try writer.close()
  }

  @Sendable private static func parityOfPurged() throws {
    let disk = SimulatedDisk(seed: 1)
    let writer = try EngineRecording.open(disk)
    try put(1...9, writer)
    try writer.backup(to: "/copy", parity: true)
    try writer.close()
    let copy = try Engine.open(
      at: "/copy", options: EngineRecording.options(), environment: disk.environment)
    try copy.put("n", .integer(10))
    try copy.purgeHistory()
    try copy.close()
    let directory = try directory(disk, "/copy")
    defer { directory.close() }
    let contents = try directory.contents()
    try require(contents.orphanedParityFiles.isEmpty, "left \(contents.orphanedParityFiles)")
    try require(
      contents.parityFiles.contains { $0.hasSuffix(".checkpoint.parity") },
      "the checkpoint has no parity")
  }
}
