package import DendroStorage
import DendroPlatform
import Synchronization

/// How a purge waits for the readers and archives that it would harm.
///
/// A reader keeps every file for itself; an archive needs the log that it has not copied yet. A purge waits until
/// neither is in its way, and is refused if that takes too long. Followers read the directory anew.
package struct Purge: Sendable {
  /// How long it waits. Default: 10 s, in which an archive that is being extended gets what the purge has sealed.
  package var limit = Duration.seconds(10)
  /// Called once, when a wait begins, with what would be thrown without it. On the thread that waits.
  package var waits: (@Sendable (StorageError) -> Void)?

  package init(limit: Duration = .seconds(10), waits: (@Sendable (StorageError) -> Void)? = nil) {
    self.limit = limit
    self.waits = waits
  }

  /// One purge for two calls: it waits as long as the more patient one.
  func merged(with other: Purge?) -> Purge {
    guard let other else { return self }
    return other.limit > limit ? other : self
  }
}

extension Checkpointing {
  /// Removes everything older than the newest checkpoint, which is read to its end before, since it is then
  /// the only one.
  ///
  /// Pages that would still be read from an older one are read before that: its file is open as long as there are
  /// any, and holds what is removed. In a directory with parity, the checkpoint that is left gets its own.
  func run(_ purge: Purge) throws(EngineError) {
    guard let newest = state.withLock({ $0.newest?.lsn }) else { return }
    do throws(StorageError) {
      if let pages = pipeline.withAdmission({ $0.pages }), pages.reader.lsn != newest {
        let isRead = try pages.readAll { state.withLock { $0.isStopped } }
        if !isRead { throw closed }
      }
      let reader = try CheckpointReader.open(directory, lsn: newest)
      for chunk in 0..<reader.chunkCount {
        if state.withLock({ $0.isStopped }) { throw closed }
        try reader.readChunk(chunk) { _ in }
      }
      let hasParity = try !directory.contents().parityFiles.isEmpty
      try removePast(purge)
      if hasParity { try restoreParity() }
    } catch {
      if state.withLock({ $0.isStopped }) { throw .closed }
      throw .storage(error)
    }
  }

  /// Writes the parity of all files but the segment that is written to.
  private func restoreParity() throws(StorageError) {
    var contents = try directory.contents()
    _ = contents.segments.popLast()
    _ = try directory.completeParity(of: contents.fileNames)
  }

  private var closed: StorageError { .ownershipLost(path: directory.path, reason: "closed") }

  /// Removes the files once no reader and no archive is in the way. Under inline execution it does not wait.
  private func removePast(_ purge: Purge) throws(StorageError) {
    let end = ContinuousClock.now + purge.limit
    var isWaiting = false
    while let obstacle = try tryRemovingPast() {
      if state.withLock({ $0.isStopped }) { throw closed }
      guard options.execution == .thread, ContinuousClock.now < end else { throw obstacle }
      if !isWaiting { purge.waits?(obstacle) }
      isWaiting = true
      usleep(10_000)
    }
  }

  /// - Returns: what is in the way; nil if all is removed.
  private func tryRemovingPast() throws(StorageError) -> StorageError? {
    var isAlone = false
    do throws(StorageError) {
      try history.pins.withPins { (_, _) throws(StorageError) in
        isAlone = try Retention.purge(directory)
      }
    } catch {
      guard case .archiveBehind = error else { throw error }
      return error
    }
    return isAlone ? nil : .locked(path: directory.path, pid: 0)
  }
}
