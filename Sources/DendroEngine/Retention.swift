package import DendroStorage

/// Which segments and checkpoints nothing needs any more.
package enum Retention {
  /// Two readable checkpoints are kept, and the log back to the older of them, so that one more opening
  /// is possible should the newest turn out to be damaged.
  ///
  /// Oldest first, each removal durable before the next, so that what a crash leaves has no gap: to
  /// whoever walks over all of the log, a gap is damage.
  static func apply(
    _ directory: DatabaseDirectory, expecting checkpoint: LogSequenceNumber? = nil,
    unreadable: Set<LogSequenceNumber>, keepsHistory: Bool
  ) throws(StorageError) {
    guard !keepsHistory else { return }
    let contents = try directory.contents()
    let doomed = doomed(
      segments: contents.segments,
      checkpoints: contents.checkpoints + (checkpoint.map { [$0] } ?? []), unreadable: unreadable)
    // A reader that opened meanwhile may be about to read them: they wait for the next time. Readers are
    // kept out for one removal only, since they do not wait for long.
    for lsn in doomed.checkpoints {
      let isFree = try directory.withoutReaders { () throws(StorageError) in
        try directory.removeCheckpoint(lsn)
      }
      guard isFree else { return }
    }
    let segments = Mutant.removalOrder.isPlanted ? doomed.segments.reversed() : doomed.segments
    for segment in segments {
      let isFree = try directory.withoutReaders { () throws(StorageError) in
        try directory.removeSegment(segment)
        if !Mutant.removalSynchronize.isPlanted { try directory.synchronize() }
      }
      guard isFree else { return }
    }
  }

  /// The decision, apart from the disk.
  package static func doomed(
    segments: [SegmentName], checkpoints: [LogSequenceNumber],
    unreadable: Set<LogSequenceNumber>
  ) -> (segments: [SegmentName], checkpoints: [LogSequenceNumber]) {
    let readable = checkpoints.filter {
      !unreadable.contains($0) || Mutant.unreadableCheckpoint.isPlanted
    }.sorted()
    let keptCount = Mutant.twoCheckpoints.isPlanted ? 1 : 2
    guard readable.count >= keptCount else { return ([], []) }
    let older = readable[readable.count - keptCount]
    let sorted = segments.sorted()
    // A segment's writes end where the next one's begin; the last one is never given up.
    let doomed = zip(sorted, sorted.dropFirst()).filter { $1.firstLSN <= older.next }.map(\.0)
    return (doomed, checkpoints.filter { $0 < older }.sorted())
  }
}
