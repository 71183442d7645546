import DendroStorage

/// Which writes are known to be durable: a record says so of those before it, a segment and a checkpoint of all
/// in front of them.
struct LogDurability {
  private(set) var lsn = LogSequenceNumber.zero
  /// The last segment, whose headers were read.
  private(set) var outline: SegmentOutline?

  init() {}

  /// Reads the headers of the last segment.
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

  func isKnown(_ write: LogSequenceNumber) -> Bool { write <= lsn }
}
