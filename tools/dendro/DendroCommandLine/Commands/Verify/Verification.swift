import DendroEngine
import DendroStorage
import DendroTree

/// One check of a whole database.
struct Verification {
  private let directory: DatabaseDirectory
  /// What notes the bytes that the medium does not give back. They are damaged ones.
  private let readableFiles: ReadableFileSystem
  /// What is damaged, in the order in which it was met.
  private(set) var damage: [Damage] = []
  private(set) var isArchive = false
  private(set) var tail: LogCursor.Problem?
  /// Of each file that has parity, what that says.
  private(set) var mendings: [Mending] = []
  private(set) var recordCount = 0
  private(set) var writeCount: UInt64 = 0
  private(set) var replayedCount: UInt64 = 0
  private(set) var byteCount: UInt64 = 0
  private(set) var segmentCount = 0
  private(set) var checkpointCount = 0
  private(set) var comparedCount = 0
  private(set) var leafCount: Int?
  private(set) var contentHash: UInt64?
  /// Of the trees that opening gives.
  private(set) var headHashes: TreeHashes?
  private(set) var lastLSN = LogSequenceNumber.zero
  /// How long it has taken.
  private(set) var seconds = 0.0
  /// Whether neither the log is replayed nor a tree made.
  let isQuick: Bool
  private let progress = VerificationProgress()

  struct Damage: Sendable {
    var message: String
    var file: String?
    var offset: UInt64?
    /// What is missing from `file`, which is the directory then; nil if nothing is.
    var missing: String?
    /// Whether this is a record that was compressed against a damaged one before it. Its own bytes may be right.
    var dependsOnDamage = false
  }

  /// What a readable checkpoint says.
  private struct Expected {
    var lsn: LogSequenceNumber
    var hashes: TreeHashes
  }

  /// - Throws: `.io`.
  init(_ directory: DatabaseDirectory, isQuick: Bool = false) throws(StorageError) {
    (self.directory, readableFiles) = try directory.readable()
    self.isQuick = isQuick
  }

  /// Opens the database as a reader would and reads all checkpoints, and the log on another thread meanwhile. A
  /// quick one only reads what opening reads.
  mutating func run() throws {
    defer { progress.clear() }
    let contents = try directory.contents()
    guard !contents.isEmpty else {
      throw Failure.noDatabase(at: directory.path)
    }
    isArchive = contents.isArchive
    checkReach(contents)
    progress.set(total: try byteCount(of: contents))
    let inputs = VerificationInputs()
    let log = BackgroundTask { [directory, progress, isQuick] in
      var log = LogVerification(
        directory, contents: contents, inputs: inputs, progress: progress, replays: !isQuick)
      try log.run()
      return log.result
    }
    defer {
      inputs.cancel()
      log.wait()
    }
    if isQuick {
      try readQuickly(contents)
      compare(try log.result(), [], nil)
    } else {
      let head = try open()
      inputs.provide(headLSN: head?.lsn)
      check(head)
      let expected = try readCheckpoints(contents, inputs)
      inputs.provide(oldest: nil)
      compare(try log.result(), expected, head?.lsn)
    }
    progress.begin("parity")
    mendings = try directory.mendings()
    for mending in mendings where mending.isDamage { add(mending) }
    for problem in try directory.missingFileProblems() {
      add(Damage(problem))
    }
    for problem in readableFiles.problems { add(Damage(problem)) }
    seconds = progress.seconds
  }

  private func byteCount(of contents: DatabaseDirectory.Contents) throws -> UInt64 {
    var byteCount: UInt64 = 0
    for segment in contents.segments { byteCount += try directory.byteCount(of: segment) }
    for lsn in contents.checkpoints { byteCount += try directory.byteCount(ofCheckpoint: lsn) }
    return byteCount
  }

  /// Cleanups keep the last two checkpoints and the log back to the older one, which serves if the newer
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

  /// Opens it as a reader would; nil if that is refused.
  private mutating func open() throws -> HistoryState? {
    do throws(EngineError) {
      progress.begin("opening")
      var options = EngineOptions()
      options.loading = .whole
      let engine = try Engine.open(
        at: directory.path, options: options, environment: directory.environment, mode: .readOnly)
      let (root, lsn) = engine.head
      let head = HistoryState(
        roots: TreeRoots(data: root, system: engine.systemNode(at: .root)), lsn: lsn)
      // Checkpoints that cannot be read are met again below, with their places.
      try engine.close()
      lastLSN = head.lsn
      return head
    } catch {
      if case .storage(let error) = error { add(error) } else { add("\(error)") }
      return nil
    }
  }

  private mutating func check(_ head: HistoryState?) {
    guard let head else { return }
    progress.begin(checkpoint: "the tree")
    leafCount = head.root.leafCount()
    let (hash, violation) = CheckedTree.check(head.roots)
    contentHash = hash
    headHashes = TreeHashes(data: hash, system: head.roots.system)
    if let violation { add("the tree breaks a rule: \(violation)") }
  }

  /// - Parameter inputs: get the tree of the oldest one that the log leads on from.
  private mutating func readCheckpoints(
    _ contents: DatabaseDirectory.Contents, _ inputs: VerificationInputs
  ) throws -> [Expected] {
    let firstLSN = contents.segments.first?.firstLSN ?? .zero
    var expected: [Expected] = []
    var doneByteCount: UInt64 = 0
    for lsn in contents.checkpoints {
      checkpointCount += 1
      let fileByteCount = try directory.byteCount(ofCheckpoint: lsn)
      do throws(StorageError) {
        progress.begin(checkpoint: "checkpoint at LSN \(lsn)")
        let reader = try CheckpointReader.open(directory, lsn: lsn)
        let roots = try CheckpointCoding.roots(reader) { [progress, doneByteCount] done in
          // Half of the work on a checkpoint is to check what was decoded.
          progress.update(
            checkpointByteCount: doneByteCount + done.share(of: fileByteCount) / 2)
        }
        byteCount += fileByteCount
        let (hash, violation) = CheckedTree.check(roots)
        if hash != reader.contentHash {
          add(
            .corrupt(
              path: reader.path, offset: 0,
              expected: "a tree with the hash \(Survey.hash(reader.contentHash))",
              found: Survey.hash(hash)))
        }
        if let violation {
          add("the tree of the checkpoint at LSN \(lsn) breaks a rule: \(violation)")
        }
        expected.append(
          Expected(lsn: lsn, hashes: TreeHashes(data: hash, system: roots.system)))
        // The log behind an older one was removed.
        if lsn.next >= firstLSN {
          try LogReader.check(reader, in: directory)
          inputs.provide(oldest: .init(lsn: lsn, roots: roots))
        }
      } catch {
        if case .io = error { throw error }
        add(error)
      }
      doneByteCount += fileByteCount
      progress.update(checkpointByteCount: doneByteCount)
    }
    progress.begin(checkpoint: nil)
    return expected
  }

  /// Checks what opening reads of the log, and all checkpoints, without making a tree.
  private mutating func readQuickly(_ contents: DatabaseDirectory.Contents) throws {
    let firstLSN = contents.segments.first?.firstLSN ?? .zero
    var unreadable: [LogSequenceNumber: StorageError] = [:]
    // Also of checkpoints that can be read, and are not of this log.
    var errors: [StorageError] = []
    var doneByteCount: UInt64 = 0
    for lsn in contents.checkpoints {
      checkpointCount += 1
      let fileByteCount = try directory.byteCount(ofCheckpoint: lsn)
      progress.begin(checkpoint: "checkpoint at LSN \(lsn)")
      do throws(StorageError) {
        let reader = try CheckpointReader.open(directory, lsn: lsn)
        do throws(StorageError) {
          try CheckpointCoding.checkChunks(reader) { [progress, doneByteCount] done in
            progress.update(checkpointByteCount: doneByteCount + done.share(of: fileByteCount))
          }
        } catch {
          unreadable[lsn] = error
          throw error
        }
        byteCount += fileByteCount
        if lsn.next >= firstLSN { try LogReader.check(reader, in: directory) }
      } catch {
        if case .io = error { throw error }
        errors.append(error)
      }
      doneByteCount += fileByteCount
      progress.update(checkpointByteCount: doneByteCount)
    }
    progress.begin(checkpoint: nil)
    do throws(StorageError) {
      lastLSN = try Engine.rehearseOpening(of: directory, checkpointErrors: unreadable)
    } catch {
      add(error)
    }
    for error in errors { add(error) }
  }

  /// Compares the replay of the log with the checkpoints, and with the tree that opening gives.
  private mutating func compare(
    _ log: LogVerification.Result, _ expected: [Expected], _ headLSN: LogSequenceNumber?
  ) {
    var hashes: [LogSequenceNumber: TreeHashes] = [:]
    for one in expected { hashes[one.lsn] = one.hashes }
    var found: [Damage] = []
    for finding in log.findings {
      switch finding {
      case .damage(let one): found.append(one)
      case .tree(let lsn, let replayed):
        guard let expected = hashes[lsn] else { continue }
        comparedCount += 1
        if replayed == expected { continue }
        found.append(
          Damage(
            message: "the log replayed to LSN \(lsn) gives the tree \(replayed), "
              + "its checkpoint holds \(expected)",
            file: directory.path(ofCheckpoint: lsn), offset: nil))
      }
    }
    if let replayed = log.hashes, log.lastLSN == headLSN, let headHashes, replayed != headHashes {
      found.append(
        Damage(
          message: "the replayed log gives the tree \(replayed), opening gives \(headHashes)",
          file: nil, offset: nil))
    }
    for one in found { add(one) }
    tail = log.tail
    segmentCount = log.segmentCount
    recordCount = log.recordCount
    writeCount = log.writeCount
    replayedCount = log.replayedCount
    byteCount += log.byteCount
  }

  private mutating func add(_ mending: Mending) {
    let isOfFile = mending.state == .mends || mending.state == .exceeded
    for (index, message) in mending.messages.enumerated() {
      damage.append(
        Damage(
          message: message, file: isOfFile && index == 0 ? mending.path : mending.parityPath,
          offset: isOfFile && index == 0 ? mending.damaged.first?.lowerBound : nil))
    }
  }

  private mutating func add(_ message: String) {
    damage.append(Damage(message: message, file: nil, offset: nil))
  }

  private mutating func add(_ error: StorageError) {
    var one =
      LogCursor.Problem(error).map { Damage($0) } ?? Damage(message: "", file: nil, offset: nil)
    one.message = "\(error)"
    add(one)
  }

  /// Adds what is not known yet: opening and walking meet the same damage.
  private mutating func add(_ one: Damage) {
    if !damage.contains(where: { $0.isAt(one) }) { damage.append(one) }
  }
}

extension RecoveryProgress {
  /// As much of a file's bytes as is done.
  fileprivate func share(of byteCount: UInt64) -> UInt64 {
    UInt64(Double(completedByteCount) / Double(max(1, totalByteCount)) * Double(byteCount))
  }
}

extension Verification.Damage {
  init(_ problem: LogCursor.Problem) {
    self.init(message: "\(problem)", file: problem.path)
    if problem.isMissing { missing = problem.expected } else { offset = problem.offset }
    dependsOnDamage = problem.dependsOnDamage
  }

  /// Whether both are about one place, or one missing thing.
  fileprivate func isAt(_ other: Self) -> Bool {
    if let missing { return missing == other.missing && file == other.file }
    guard let file, let offset else { return message == other.message }
    return file == other.file && offset == other.offset
  }
}
