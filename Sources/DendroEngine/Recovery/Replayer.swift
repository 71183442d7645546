import DendroStorage
import DendroTree

/// Applies the log's records to a tree with the code of normal operation, and hence to the same result. Used
/// by recovery and by history.
struct Replayer: ~Copyable {
  private var editor: TreeEditor
  private var systemEditor: TreeEditor
  private(set) var lastLSN: LogSequenceNumber
  private(set) var lastTime: Int64
  private(set) var writeCount: UInt64 = 0
  /// Raw bytes of the records replayed.
  private(set) var byteCount: UInt64 = 0

  /// Bytes of those records in the file.
  private(set) var storedByteCount: UInt64 = 0

  /// Nil for the whole tree.
  private let location: ReplayLocation?
  /// Used for all records, which may have one write each.
  private var reader = LogV1Reader()
  /// The entries of an update that concern the location.
  private let part = PayloadBuffer()

  /// - Parameter location: the only one that `replay(_:_:)` gives the right value, with what is below it.
  init(
    _ roots: consuming TreeRoots, lastLSN: LogSequenceNumber, lastTime: Int64,
    location: ReplayLocation? = nil
  ) {
    self.location = location
    editor = TreeEditor(roots.data, remembersPlace: true, loadsPages: true)
    systemEditor = TreeEditor(roots.system, remembersPlace: false)
    self.lastLSN = lastLSN
    self.lastTime = lastTime
  }

  /// The tree with all writes so far.
  var root: Node {
    mutating get {
      editor.settle()
      return editor.root
    }
  }

  /// The second root with all writes so far; without any if there is a location.
  var system: Node { systemEditor.root }

  /// Where a replay of the past ends.
  struct Limit {
    /// The last write that is applied.
    var lsn = LogSequenceNumber(.max)
    /// Milliseconds since 1970; the first write after it is not applied, nor is any behind that.
    var time = Int64.max
  }

  /// Applies the record's writes up to the limit.
  ///
  /// - Returns: false where the limit is reached: no later record is applied.
  mutating func replay(
    _ record: RecordInfo, _ payload: UnsafeRawBufferPointer, upTo limit: Limit
  ) throws(StorageError) -> Bool {
    guard record.kind == .writes else { return lastLSN < limit.lsn }
    reader.restart(record, payload)
    var isBelowLimit = lastLSN < limit.lsn
    for _ in 0..<record.count where isBelowLimit {
      do throws(CodingError) {
        if limit.time < .max { isBelowLimit = try reader.nextTime() <= limit.time }
      } catch {
        throw error.located(in: record)
      }
      guard isBelowLimit else { break }
      try applyNext(in: record)
      isBelowLimit = lastLSN < limit.lsn
    }
    try settle(in: record)
    return isBelowLimit
  }

  /// Applies the record's writes.
  mutating func replay(
    _ record: RecordInfo, _ payload: UnsafeRawBufferPointer
  ) throws(StorageError) {
    guard record.kind == .writes else { return }
    if let location, record.count == 1, lastLSN < record.firstLSN,
      location.isPassedOver(by: payload)
    {
      lastLSN = record.lastLSN
      lastTime = max(lastTime, record.baseTime)
      writeCount += 1
      return note(record, payload)
    }
    reader.restart(record, payload)
    for _ in 0..<record.count { try applyNext(in: record) }
    try settle(in: record)
    guard reader.isAtEnd else {
      throw CodingError(expected: "the end of the record's writes", found: "more bytes").located(
        in: record)
    }
    note(record, payload)
  }

  /// Applies the next write of a record, unless the tree has it: the first record may begin before the checkpoint's
  /// last write.
  private mutating func applyNext(in record: RecordInfo) throws(StorageError) {
    let write: WriteView
    do throws(CodingError) {
      write = try reader.next()
    } catch {
      throw error.located(in: record)
    }
    guard reader.lsn > lastLSN else { return }
    do throws(PageFailure) {
      if let location {
        try location.withPart(of: write, part) { (write) throws(PageFailure) in
          try editor.applyLoading(write)
        }
      } else {
        if !write.isNothing { try editor.applyLoading(write) }
        if let change = reader.system { systemEditor.apply(change) { _, _ in } }
      }
    } catch {
      throw Self.located(error, in: record)
    }
    lastLSN = reader.lsn
    lastTime = max(lastTime, reader.time)
    writeCount += 1
  }

  /// Puts into the tree what waits for more writes of the record.
  private mutating func settle(in record: RecordInfo) throws(StorageError) {
    do throws(PageFailure) {
      try editor.settleLoading()
    } catch {
      throw Self.located(error, in: record)
    }
  }

  private static func located(_ failure: PageFailure, in record: RecordInfo) -> StorageError {
    let found = CodingError(expected: "the pages of the tree", found: "\(failure.cause)")
    return (failure.cause as? StorageError) ?? found.located(in: record)
  }

  private mutating func note(_ record: RecordInfo, _ payload: UnsafeRawBufferPointer) {
    byteCount += UInt64(payload.count)
    storedByteCount += record.endOffset - record.offset
  }
}
