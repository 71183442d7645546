import DendroEngine
import DendroStorage
import DendroTestSupport
import DendroTesting
import DendroTree
import Foundation

/// A database directory of which everything is known: every write, the tree after it, and where each record
/// lies. It has several openings, segments and checkpoints, and records with more than one write.
struct LoggedDirectory {
  /// The write with the number n + 1.
  private(set) var writes: [Write] = []
  /// The tree after n writes.
  private(set) var trees: [Node] = [.empty]
  /// The time of the write with the number n + 1.
  private(set) var times: [Int64] = []
  /// By the names of their files, in the order of their offsets.
  private(set) var records: [String: [RecordInfo]] = [:]
  var files: [String: Data] = [:]

  static let id = DatabaseID(high: 0x1122_3344_5566_7788, low: 0x99AA_BBCC_DDEE_FF00)
  private static let start: Int64 = 1_700_000_000_000

  var segmentNames: [String] { files.keys.filter { $0.hasSuffix(".log") }.sorted() }
  var checkpointNames: [String] { files.keys.filter { $0.hasSuffix(".checkpoint") }.sorted() }

  /// - Parameters:
  ///   - path: where the directory is made.
  ///   - keepsHistory: whether the log begins with the first write.
  ///   - id: of the database.
  init(
    at path: String, seed: UInt64, recordCount: Int = 60, keepsHistory: Bool,
    id: DatabaseID = Self.id
  ) throws {
    var generator = WriteGenerator(seed: seed)
    let environment = Environment(
      fileSystem: Environment.system.fileSystem, clock: Environment.system.clock,
      randomness: SeededRandomness(seed: seed))
    let directory = try DatabaseDirectory.open(
      path, environment: environment, mode: .readWrite(create: true))
    defer { directory.close() }
    var log = try LogWriter.create(directory, databaseID: id, time: Self.start)
    for number in 1...recordCount {
      try append(1 + (generator.random.oneIn(4) ? generator.random.below(6) : 0), &generator, log)
      if !generator.random.oneIn(8) { try log.synchronize() }
      let time = times.last ?? Self.start
      if generator.random.oneIn(12) { try log.roll(time: time) }
      if number % 17 == 0 {
        try log.roll(time: time)
        _ = try CheckpointCoding.write(
          TreeRoots(data: trees[writes.count]), lsn: log.lastLSN, time: time, databaseID: id,
          chunkByteLimit: 300, to: directory, isCancelled: { false })
      }
      if generator.random.oneIn(10) || number == recordCount {
        try log.close()
        guard number < recordCount, let end = try LogReader.read(directory, visit: { _, _ in })
        else { break }
        log = try LogWriter.resume(directory, end: repairTail(directory, end))
      }
    }
    if !keepsHistory { try removeHistory(directory) }
    let cursor = LogCursor(directory)
    var found: [String: [RecordInfo]] = [:]
    while try cursor.step({ item in
      guard case .record(let record, let path, _) = item else { return }
      found[(path as NSString).lastPathComponent, default: []].append(record)
    }) {}
    records = found
    for name in try FileManager.default.contentsOfDirectory(atPath: path) {
      files[name] = FileManager.default.contents(atPath: "\(path)/\(name)") ?? Data()
    }
  }

  private mutating func append(_ count: Int, _ generator: inout WriteGenerator, _ log: LogWriter)
    throws
  {
    let first = log.nextLSN
    let baseTime = (times.last ?? Self.start) + Int64(generator.random.below(2000))
    let payload = PayloadBuffer()
    var previousPath = Path.root
    var previousTime = baseTime
    for _ in 0..<count {
      var root = trees[writes.count]
      var write = generator.write()
      // Writes that change nothing are not logged.
      while root.apply(write).isEmpty { write = generator.write() }
      let time = previousTime + Int64(generator.random.below(50))
      WriteCoding.encodeHead(
        of: write, timeDelta: UInt64(time - previousTime), previousPath: previousPath,
        into: payload)
      WriteCoding.encodeBody(of: write, into: payload)
      writes.append(write)
      trees.append(root)
      times.append(time)
      (previousPath, previousTime) = (write.path, time)
    }
    try payload.withBytes { bytes in
      try log.stage(bytes, firstLSN: first, count: count, baseTime: baseTime)
    }
    try log.write()
  }

  /// Removes what opening does not need, as retention does.
  private func removeHistory(_ directory: DatabaseDirectory) throws {
    let contents = try directory.contents()
    guard let older = contents.checkpoints.dropLast().last else { return }
    for lsn in contents.checkpoints where lsn < older { try directory.removeCheckpoint(lsn) }
    for (segment, next) in zip(contents.segments, contents.segments.dropFirst())
    where next.firstLSN <= older.next {
      try directory.removeSegment(segment)
    }
  }
}
