package import DendroStorage
import DendroTree

/// What a full check of a directory found.
package struct VerificationReport: Sendable {
  /// One file's state.
  package struct Checkpoint: Sendable {
    package var lsn: LogSequenceNumber
    package var byteCount: UInt64
    package var leafCount: UInt64
    package var contentHash: UInt64
    /// Why it cannot be used; nil where everything about it is right.
    package var problem: StorageError?
  }

  package var checkpoints: [Checkpoint] = []
  package var segmentCount = 0
  package var logByteCount: UInt64 = 0
  package var writeCount: UInt64 = 0
  package var firstLSN = LogSequenceNumber.zero
  package var lastLSN = LogSequenceNumber.zero
  package var leafCount: UInt64 = 0
  /// Of the tree that opening would give.
  package var contentHash: UInt64 = 0
  /// What a crash left at the end; opening cuts it. No damage.
  package var torn: TornTail?
  package var foreignFiles: [String] = []
  /// Everything that is damaged, with its place. Empty: all is well.
  package var damages: [StorageError] = []

  package init() {}
}

/// Checks everything: each checkpoint's bytes, hash and tree, each record of the log, and that replaying
/// the log leads to the very trees that the checkpoints hold. Changes nothing; works beside a writer.
package enum Verification {
  /// - Complexity: O(bytes in the directory); memory for two trees.
  /// - Throws: only where the directory cannot be read at all; damage is in the report.
  package static func run(
    _ path: String, environment: Environment = .system,
    progress: (@Sendable (RecoveryProgress) -> Void)? = nil
  ) throws(EngineError) -> VerificationReport {
    do throws(StorageError) {
      let directory = try DatabaseDirectory.open(
        WorkingDirectory.absolute(path), environment: environment, mode: .readOnly)
      defer { directory.close() }
      var run = Run(directory: directory, contents: try directory.contents(), progress: progress)
      guard !run.contents.isEmpty else { throw .notFound(path: directory.path) }
      try run.checkCheckpoints()
      try run.checkLog()
      return run.report
    } catch {
      throw .storage(error)
    }
  }

  private struct Run {
    let directory: DatabaseDirectory
    let contents: DatabaseDirectory.Contents
    let progress: (@Sendable (RecoveryProgress) -> Void)?
    var report = VerificationReport()
    /// The tree from which the log is replayed, and the hashes to meet on the way.
    private var start: (lsn: LogSequenceNumber, time: Int64, root: Node)?
    private var hashes: [LogSequenceNumber: UInt64] = [:]

    init(
      directory: DatabaseDirectory, contents: DatabaseDirectory.Contents,
      progress: (@Sendable (RecoveryProgress) -> Void)?
    ) {
      self.directory = directory
      self.contents = contents
      self.progress = progress
      report.foreignFiles = contents.foreign
      report.segmentCount = contents.segments.count
    }

    mutating func checkCheckpoints() throws(StorageError) {
      let firstSegment = contents.segments.map(\.firstLSN).min()
      for lsn in contents.checkpoints.sorted() {
        var found = VerificationReport.Checkpoint(
          lsn: lsn, byteCount: 0, leafCount: 0, contentHash: 0, problem: nil)
        do throws(StorageError) {
          found.byteCount = try directory.byteCount(ofCheckpoint: lsn)
          let reader = try CheckpointReader.open(directory, lsn: lsn)
          found.leafCount = reader.leafCount
          found.contentHash = reader.contentHash
          let root = try CheckpointCoding.decode(reader, progress: progress)
          try checkTree(root, hash: reader.contentHash, path: reader.path)
          hashes[lsn] = reader.contentHash
          // The log is replayed from the oldest one that it follows without a gap.
          if start == nil, firstSegment != LogSequenceNumber(1), let firstSegment,
            firstSegment <= lsn.next
          {
            start = (lsn, reader.time, root)
          }
        } catch {
          found.problem = error
          report.damages.append(error)
        }
        report.checkpoints.append(found)
      }
    }

    private func checkTree(_ root: Node, hash: UInt64, path: String) throws(StorageError) {
      let actual = CheckpointCoding.contentHash(of: root)
      guard actual == hash else {
        throw .corrupt(
          path: path, offset: 0, expected: "content hash \(hash.hexadecimal)",
          found: actual.hexadecimal)
      }
      do {
        try root.checkInvariants()
      } catch {
        throw .corrupt(path: path, offset: 0, expected: "a tree in order", found: "\(error)")
      }
    }

    mutating func checkLog() throws(StorageError) {
      for segment in contents.segments {
        report.logByteCount += try directory.byteCount(of: segment)
      }
      let total = report.logByteCount
      let progress = self.progress
      var replayer = Replayer(
        root: start?.root ?? .empty, lastLSN: start?.lsn ?? .zero, lastTime: start?.time ?? 0)
      start?.root = .empty
      var damages: [StorageError] = []
      let hashes = self.hashes
      report.firstLSN = replayer.lastLSN.next
      do throws(StorageError) {
        let end = try LogReader.read(
          directory, contents: contents, after: replayer.lastLSN,
          provenDurable: contents.checkpoints.max() ?? .zero
        ) { (record, payload) throws(StorageError) in
          try replayer.replay(record, payload) { lsn, root in
            guard let hash = hashes[lsn] else { return }
            let actual = CheckpointCoding.contentHash(of: root)
            if actual != hash {
              damages.append(
                .corrupt(
                  path: record.segment.fileName, offset: record.offset,
                  expected: "the tree of the checkpoint at write \(lsn), hash \(hash.hexadecimal)",
                  found: "hash \(actual.hexadecimal) after replaying the log"))
            }
          }
          progress?(
            RecoveryProgress(
              phase: .log, completedByteCount: min(replayer.storedByteCount, total),
              totalByteCount: total))
        }
        report.torn = end?.torn ?? end?.unfinished
        if let end, end.lastLSN < contents.checkpoints.max() ?? .zero {
          damages.append(
            .corrupt(
              path: directory.path, offset: 0,
              expected: "a log that reaches the checkpoint at write \(contents.checkpoints.max()!)",
              found: "a log that ends at write \(end.lastLSN)"))
        }
      } catch {
        damages.append(error)
      }
      report.damages += damages
      report.writeCount = replayer.writeCount
      report.lastLSN = replayer.lastLSN
      report.leafCount = UInt64(replayer.root.leafCount())
      report.contentHash = CheckpointCoding.contentHash(of: replayer.root)
      do {
        try replayer.root.checkInvariants()
      } catch {
        report.damages.append(
          .corrupt(
            path: directory.path, offset: 0, expected: "a tree in order", found: "\(error)"))
      }
    }
  }
}

extension UInt64 {
  /// Sixteen digits.
  package var hexadecimal: String {
    let digits = String(self, radix: 16)
    return String(repeating: "0", count: 16 - digits.count) + digits
  }
}
