package import DendroStorage

extension Engine {
  /// Both trees behind a write, if that is the last one of the head, of what readers see, or of the batch that is being
  /// appended to the shared log.
  ///
  /// - Parameter lsn: the write.
  /// - Returns: nil if the engine has left that state behind, or has not come to it.
  /// - Complexity: O(1). Does not wait for the disk; may be called in a turn.
  package func roots(at lsn: LogSequenceNumber) -> TreeRoots? {
    pipeline.admission.withLockInTurn { admission in
      admission.lastLSN == lsn ? admission.roots : admission.covered?.roots(at: lsn)
    }
  }
}
