import DendroStorage

/// Where a server's copy of the log ends.
struct CopyPosition: Hashable, Sendable {
  var lsn: LogSequenceNumber
  /// Nil within a batch, whose other records the disk has lost.
  var chain: LogChain?

  init(lsn: LogSequenceNumber, chain: LogChain?) {
    self.lsn = lsn
    self.chain = chain
  }

  /// Nil within a batch.
  var known: LogPosition? { chain.map { LogPosition(lsn: lsn, chain: $0) } }

  init(_ position: LogPosition) { self.init(lsn: position.lsn, chain: position.chain) }
}
