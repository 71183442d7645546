import DendroStorage

/// A checkpoint that a server has published in PostgreSQL: the file of a checkpoint in parts, and what it is. It has a row in
/// `dendro.checkpoint` once all of its parts are in `dendro.checkpoint_part`.
struct PublishedCheckpoint: Hashable, Sendable {
  static let uploadByteCount = 16

  /// Names it. Drawn at random: the files of two servers at one LSN differ.
  var upload: [UInt8]
  /// Where the log ends that it has: the end of a batch.
  var position: LogPosition
  var partCount: Int64
  /// Of the file.
  var byteCount: Int64
  /// As `CheckpointHash` has it.
  var hash: [UInt8]

  var lsn: LogSequenceNumber { position.lsn }
}

/// A hash over the position and the file of a checkpoint, part by part.
struct CheckpointHash: ~Copyable {
  private let hash = SHA256()

  init(at position: LogPosition) {
    hash.update("dendro checkpoint")
    hash.update(position.lsn.rawValue)
    hash.update(position.chain.bytes)
  }

  func update(_ part: [UInt8]) { hash.update(part) }

  consuming func finish() -> [UInt8] { hash.finish() }
}
