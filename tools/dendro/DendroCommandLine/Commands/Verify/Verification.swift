import DendroEngine
import DendroStorage
import DendroTree

/// One check of a whole database.
struct Verification {
  private let directory: DatabaseDirectory
  /// What is damaged, in the order in which it was met.
  private(set) var damage: [Damage] = []
  private(set) var tail: LogCursor.Problem?
  private(set) var recordCount = 0
  private(set) var writeCount: UInt64 = 0
  private(set) var replayedCount: UInt64 = 0
  private(set) var byteCount: UInt64 = 0
  private(set) var segmentCount = 0
  private(set) var checkpointCount = 0
  private(set) var comparedCount = 0
  private(set) var leafCount: Int?
  private(set) var contentHash: UInt64?
  private(set) var lastLSN = LogSequenceNumber.zero
  /// How long it has taken.
  private(set) var seconds = 0.0
  private let progress = Progress("verifying:")

  struct Damage {
    var message: String
    var file: String?
    var offset: UInt64?
  }

  /// What a readable checkpoint says.
  private struct Expected {
    var lsn: LogSequenceNumber
    var hash: UInt64
    /// Of the oldest one that the log leads on from: there may be many.
    var root: Node?
  }

  init(_ directory: DatabaseDirectory) { self.directory = directory }

  mutating func run() throws {
    let contents = try directory.contents()
    guard !contents.isEmpty else {
      throw Failure(.problem, "there is no database at \(directory.path)")
    }
    checkReach(contents)
    let head = recover()
    let expected = try readCheckpoints(contents)
    try readLog(expected, head)
    seconds = progress.seconds
    progress.clear()
  }

  /// Cleanups keep the last two checkpoints and the log back to the older one, which serves where the newer
  /// one cannot be read. They remove checkpoints before the log that belongs to them, so that no crash
  /// leaves one of the two without its log.
  private mutating func checkReach(_ contents: DatabaseDirectory.Contents) {
    guard let older = contents.checkpoints.dropLast().last, let first = contents.segments.first,
      older.next < first.firstLSN
    else { return }
    let path = directory.path(ofCheckpoint: older)
    damage.append(
      Damage(
        message: "the log begins at write \(first.firstLSN), but \(path) needs it from write "
          + "\(older.next) on", file: path, offset: nil))
  }

  /// Opens it as a reader would; nil where that is refused.
  private mutating func recover() -> (root: Node, lsn: LogSequenceNumber)? {
    do throws(EngineError) {
      var options = EngineOptions()
      options.loading = .whole
      let engine = try Engine.open(
        at: directory.path, options: options, mode: .readOnly, progress: progress.recovery)
      let head = engine.head
      // Checkpoints that cannot be read are met again below, with their places.
      try engine.close()
      progress.begin("counting the leaves of the tree")
      leafCount = head.root.leafCount()
      contentHash = hash(of: head.root, "the tree")
      lastLSN = head.lsn
      progress.begin("checking the rules of the tree")
      do { try head.root.checkInvariants() } catch {
        add("the tree breaks a rule: \(error)")
      }
      return head
    } catch {
      if case .storage(let error) = error { add(error) } else { add("\(error)") }
      return nil
    }
  }

  private mutating func readCheckpoints(_ contents: DatabaseDirectory.Contents) throws
    -> [Expected]
  {
    let firstLSN = contents.segments.first?.firstLSN ?? .zero
    var expected: [Expected] = []
    for lsn in contents.checkpoints {
      checkpointCount += 1
      do throws(StorageError) {
        let name = "checkpoint at LSN \(lsn)"
        progress.begin(name)
        let reader = try CheckpointReader.open(directory, lsn: lsn)
        let root = try CheckpointCoding.decode(reader, progress: progress.recovery(of: name))
        byteCount += try directory.byteCount(ofCheckpoint: lsn)
        let hash = hash(of: root, name)
        if hash != reader.contentHash {
          add(
            .corrupt(
              path: reader.path, offset: 0,
              expected: "a tree with the hash \(Survey.hash(reader.contentHash))",
              found: Survey.hash(hash)))
        }
        progress.begin("\(name): checking its rules")
        do { try root.checkInvariants() } catch {
          add("the tree of the checkpoint at LSN \(lsn) breaks a rule: \(error)")
        }
        // The log behind an older one was removed.
        var isOfLog = lsn.next >= firstLSN
        if isOfLog {
          do throws(StorageError) { try LogReader.check(reader, in: directory) } catch {
            if case .io = error { throw error }
            add(error)
            isOfLog = false
          }
        }
        // The replay may begin with it.
        let isFirst = isOfLog && !expected.contains { $0.root != nil }
        expected.append(Expected(lsn: lsn, hash: hash, root: isFirst ? root : nil))
      } catch {
        if case .io = error { throw error }
        add(error)
      }
    }
    return expected
  }

  /// Reads the whole log, and replays it from its beginning or from the oldest checkpoint.
  private mutating func readLog(
    _ expected: [Expected], _ head: (root: Node, lsn: LogSequenceNumber)?
  ) throws {
    let cursor = LogCursor(directory)
    // Replayed as far as the log is whole.
    var replay: (root: Node, lsn: LogSequenceNumber)?
    var waiting = expected[...]
    var damage: [Damage] = []
    var tail: LogCursor.Problem?
    var isBroken = false
    var counts = (segments: 0, records: 0, writes: UInt64(0), replayed: UInt64(0), bytes: UInt64(0))
    var compared = 0
    let end = head?.lsn
    var logByteCount: UInt64 = 0
    for segment in try directory.contents().segments {
      logByteCount += try directory.byteCount(of: segment)
    }
    var segmentByteCount: UInt64 = 0

    func compare() {
      while let first = waiting.first, let lsn = replay?.lsn, first.lsn <= lsn {
        waiting.removeFirst()
        guard first.lsn == lsn, let root = replay?.root else { continue }
        compared += 1
        let hash = hash(of: root, "the replayed tree at LSN \(first.lsn)")
        if hash != first.hash {
          damage.append(
            Damage(
              message: "the log replayed to LSN \(first.lsn) gives the tree \(Survey.hash(hash)), "
                + "its checkpoint holds \(Survey.hash(first.hash))",
              file: directory.path(ofCheckpoint: first.lsn), offset: nil))
        }
      }
    }

    while try cursor.step({ item in
      switch item {
      case .segment(let header, _, let byteCount):
        counts.segments += 1
        counts.bytes += byteCount
        segmentByteCount = byteCount
        guard counts.segments == 1 else { break }
        // An older one is what a crash left of a cleanup: the log that led on from it is gone.
        waiting = waiting.drop { $0.lsn.next < header.firstLSN }
        if header.firstLSN == LogSequenceNumber(1) {
          replay = (.empty, .zero)
        } else if let oldest = waiting.popFirst(), let root = oldest.root {
          replay = (root, oldest.lsn)
        }
      case .problem(let problem):
        if problem.isTail {
          tail = problem
        } else {
          isBroken = true
          damage.append(
            Damage(message: "\(problem)", file: problem.path, offset: problem.offset))
        }
      case .record(let record, let path, let payload):
        counts.records += 1
        progress.update(
          counts.bytes - segmentByteCount + record.endOffset, of: logByteCount,
          "\(Format.count(counts.writes, "write")), \(record.segment.fileName)")
        guard let payload else { break }
        let content = RecordWrites(record, payload)
        if let problem = content.problem {
          isBroken = true
          damage.append(
            Damage(
              message: "\(path), offset \(record.offset): \(problem)", file: path,
              offset: record.offset))
        }
        for logged in content.writes {
          counts.writes += 1
          // Only its number is taken: a second reference to the tree would make each write copy pages.
          guard !isBroken, let lsn = replay?.lsn, logged.lsn > lsn, logged.lsn <= end ?? .zero
          else { continue }
          _ = replay?.root.apply(logged.write)
          replay?.lsn = logged.lsn
          counts.replayed += 1
          compare()
        }
      }
    }) {}
    compare()
    if !isBroken, let head, let state = replay, state.lsn == head.lsn, let contentHash {
      let hash = hash(of: state.root, "the replayed tree")
      if hash != contentHash {
        damage.append(
          Damage(
            message: "the replayed log gives the tree \(Survey.hash(hash)), opening gives "
              + Survey.hash(contentHash), file: nil, offset: nil))
      }
    }
    for one in damage where !self.damage.contains(where: { $0.isAt(one) }) {
      self.damage.append(one)
    }
    self.tail = tail
    segmentCount = counts.segments
    recordCount = counts.records
    writeCount = counts.writes
    replayedCount = counts.replayed
    byteCount += counts.bytes
    comparedCount = compared
  }

  /// The content hash of a tree, with progress.
  private func hash(of root: Node, _ name: String) -> UInt64 {
    var hasher = ReportingHasher(progress: progress, name: name)
    root.contentHash(using: &hasher)
    return hasher.base.finish()
  }

  private mutating func add(_ message: String) {
    damage.append(Damage(message: message, file: nil, offset: nil))
  }

  private mutating func add(_ error: StorageError) {
    var one = Damage(message: "\(error)", file: nil, offset: nil)
    if case .corrupt(let path, let offset, _, _) = error { (one.file, one.offset) = (path, offset) }
    if !damage.contains(where: { $0.isAt(one) }) { damage.append(one) }
  }
}

extension Verification.Damage {
  /// Whether both are about one place: opening and walking meet the same damage.
  fileprivate func isAt(_ other: Self) -> Bool {
    guard let file, let offset else { return message == other.message }
    return file == other.file && offset == other.offset
  }
}

/// Says how far the hashing is, which takes long for millions of leaves.
private struct ReportingHasher: ContentHasher {
  var base = ContentHash64()
  let progress: Progress
  let name: String
  private var byteCount: UInt64 = 0

  init(progress: Progress, name: String) {
    self.progress = progress
    self.name = name
  }

  mutating func combine(_ bytes: UnsafeRawBufferPointer) {
    base.combine(bytes)
    byteCount += UInt64(bytes.count)
    progress.update(byteCount, of: nil, "\(name): hashing \(Format.bytes(byteCount))")
  }
}
