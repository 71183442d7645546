import DendroStorage

/// The last write that is known to be durable.
///
/// A record carries the number of the last write that was durable when it was written. All writes before the first
/// one of a segment are durable, and so are all that a checkpoint contains.
struct LogDurability {
  private(set) var lsn = LogSequenceNumber.zero
  /// The record headers of the last segment; nil if there is no segment, or its own header cannot be read.
  private(set) var outline: SegmentOutline?

  init() {}

  /// What the names of the files and the record headers of the last segment say.
  init(_ directory: DatabaseDirectory) throws {
    let contents = try directory.contents()
    lsn = contents.checkpoints.last ?? .zero
    guard let last = contents.segments.last else { return }
    lsn = max(lsn, last.firstLSN.previous)
    do throws(StorageError) {
      let outline = try SegmentOutline(last, in: directory)
      self.outline = outline
      lsn = max(lsn, outline.durableUpTo)
    } catch {
      guard case .corrupt = error else { throw error }
    }
  }

  mutating func note(_ record: RecordInfo) { lsn = max(lsn, record.durableUpTo) }

  mutating func note(_ problem: LogCursor.Problem) {
    lsn = max(lsn, problem.displacedUpTo ?? .zero)
  }

  func isKnown(_ write: LogSequenceNumber) -> Bool { write <= lsn }
}
