/// Appends records to the log.
///
/// Records are staged in memory, written in one call, and made durable by `synchronize`. No failed call is
/// simply repeated: a failed write is cut back, and a failed synchronize or cut poisons the writer, since the
/// system may have dropped the pages (Rebello et al., USENIX ATC 2020).
///
/// It has one owner, the engine's `DiskState`, for the thread that has the turn; not for two threads at once.
package final class LogWriter {
  enum State {
    case good
    /// A part of the staged bytes may be in the file: `cutBack` has to be called before anything else.
    case needsCut
    case poisoned(StorageError)
    case closed
  }

  let directory: DatabaseDirectory
  let options: LogOptions
  var state = State.good
  var file: any File
  var path: String
  var identity: FileIdentity
  private var pathComparison: PathComparison
  package internal(set) var segment: SegmentHeader

  /// Where the last record that was written ends.
  var offset: UInt64
  var checksum: UInt32
  /// The last write that was written, staged ones not counted.
  package internal(set) var lastLSN: LogSequenceNumber
  /// All writes up to here are durable.
  package internal(set) var durableUpTo: LogSequenceNumber
  var lastTime: Int64
  var preallocation: Preallocation
  var hasUnsynchronized = false
  var endsWithIdleRecord = false

  var compressor = HistoryCompressor()
  var staging = RawBuffer()
  private var shortPayload = ShortPayload()
  /// Bytes of short records since the last restart.
  private var shortByteCount = 0
  /// Which piece of the file the last short record begins in; see `sharingByteCount`.
  private var sharingPiece: UInt64 = 0
  var stagedCount = 0
  var stagedChecksum: UInt32
  var stagedLSN: LogSequenceNumber

  /// Bytes of the written payloads of writes, before compression.
  package internal(set) var rawByteCount: UInt64 = 0
  /// Bytes of all records that were written, headers included.
  package internal(set) var storedByteCount: UInt64 = 0
  var stagedRawByteCount: UInt64 = 0
  package internal(set) var synchronizeCount: UInt64 = 0

  /// The error that poisoned the writer, if any: it refuses every call until the database is reopened.
  package var poison: StorageError? {
    if case .poisoned(let error) = state { return error }
    return nil
  }
  /// The LSN of the write that is staged next.
  package var nextLSN: LogSequenceNumber { stagedLSN.next }
  /// The size of the present segment without preallocated space.
  package var segmentByteCount: UInt64 { offset }
  package var segmentName: SegmentName { SegmentName(firstLSN: segment.firstLSN) }
  /// Whether the present segment may have writes to the second root.
  package var hasSecondRoot: Bool { segment.format.hasSecondRoot }
  /// Whether the present segment has outgrown its limit.
  package var wantsRoll: Bool { offset >= options.segmentByteLimit }

  init(
    directory: DatabaseDirectory, options: LogOptions, file: any File, segment: SegmentHeader,
    offset: UInt64, checksum: UInt32, lastLSN: LogSequenceNumber, durableUpTo: LogSequenceNumber,
    lastTime: Int64, allocatedEnd: UInt64, endsWithIdleRecord: Bool
  ) throws(StorageError) {
    self.directory = directory
    self.options = options
    self.file = file
    self.segment = segment
    self.offset = offset
    self.checksum = checksum
    self.lastLSN = lastLSN
    self.durableUpTo = durableUpTo
    self.lastTime = lastTime
    preallocation = Preallocation(end: allocatedEnd, options)
    self.endsWithIdleRecord = endsWithIdleRecord
    path = directory.path(of: SegmentName(firstLSN: segment.firstLSN))
    identity = try file.identity(path: path)
    pathComparison = PathComparison(watch: directory.fileSystem.watch(directory.path))
    stagedChecksum = checksum
    stagedLSN = lastLSN
  }

  // MARK: - Appending

  /// Compresses the writes of one record, which waits for `write`.
  ///
  /// - `firstLSN`: one more than the last write staged.
  /// - `count`: writes in the payload, 1 or more.
  /// - `baseTime`: milliseconds since 1970.
  /// - Throws: `.limit` for a payload over 257 MiB; the poison; nothing is staged then.
  /// - Complexity: O(bytes); no system call.
  package func stage(
    _ payload: UnsafeRawBufferPointer, firstLSN: LogSequenceNumber, count: Int, baseTime: Int64
  ) throws(StorageError) {
    try checkGood()
    precondition(firstLSN == stagedLSN.next, "writes are staged in order and without a gap")
    precondition(count > 0 && count <= payload.count, "a record has writes, each of a byte or more")
    guard payload.count <= Compression.rawByteLimit else {
      throw .limit(
        what: "the size of a record", value: UInt64(payload.count),
        limit: UInt64(Compression.rawByteLimit))
    }
    reserveStaging(Compression.bound(payload.count))
    let mayBeShort = count == 1 && durableUpTo == stagedLSN
    if mayBeShort, stageShort(payload, baseTime) { return }
    // The header's length depends on the block's: the block is compressed to where the longest header would
    // end, and then moved to the end of the real one.
    let block = staging.base + stagedCount + RecordHeader.byteCountMax
    let (blockByteCount, isRestart) = compressor.compress(payload, into: block)
    var header = RecordHeader(
      kind: .writes, isCompressed: blockByteCount > 0, isRestart: isRestart,
      storedByteCount: blockByteCount > 0 ? blockByteCount : payload.count,
      rawByteCount: payload.count, firstLSN: firstLSN, count: count, baseTime: baseTime,
      durableUpTo: durableUpTo,
      previousChecksum: stagedChecksum, payloadChecksum: 0)
    header.payloadChecksum = Checksum.xxh3(payload, seed: segment.salt)
    stage(
      header,
      blockByteCount > 0 ? UnsafeRawBufferPointer(start: block, count: blockByteCount) : payload)
    if isRestart { restartShort() }
    stagedLSN = header.lastLSN
    stagedRawByteCount += UInt64(payload.count)
    lastTime = baseTime
  }

  /// Writes all staged records in one call; they are durable only after `synchronize`.
  ///
  /// - Throws: `.io` out of space: call `cutBack` next; the staged records are dropped. Any other error
  ///   poisons the writer, and the bytes that are in the file are cut off if the disk still allows it.
  ///   `.ownershipLost` poisons likewise.
  package func write() throws(StorageError) {
    try checkGood()
    if stagedCount == 0 { return }
    do {
      try directory.checkHolder()
      if pathComparison.isDue(at: directory.environment.clock.now()) { try checkIdentity() }
    } catch {
      throw poison(error)
    }
    let end = offset + UInt64(stagedCount)
    preallocation.extend(to: end, of: file, path)
    do {
      try file.writeAll(
        UnsafeRawBufferPointer(start: staging.base, count: stagedCount), at: offset, path: path)
    } catch {
      dropStaged()
      if error.isOutOfSpace {
        state = .needsCut
        throw error
      }
      let refusal = poison(error)
      cutRefused()
      throw refusal
    }
    offset = end
    preallocation.didWrite(to: end)
    checksum = stagedChecksum
    lastLSN = stagedLSN
    storedByteCount += UInt64(stagedCount)
    rawByteCount += stagedRawByteCount
    stagedRawByteCount = 0
    stagedCount = 0
    hasUnsynchronized = true
    if staging.capacity > 4 * 1024 * 1024 { staging.release() }
  }

  /// Makes all written records durable. A failure poisons the writer and is never retried.
  package func synchronize() throws(StorageError) {
    try checkGood()
    if !hasUnsynchronized { return }
    do {
      try file.synchronize(path: path)
    } catch {
      throw poison(error)
    }
    noteSynchronized()
  }

  func noteSynchronized() {
    synchronizeCount += 1
    hasUnsynchronized = false
    durableUpTo = lastLSN
  }

  // MARK: - Parts

  func stage(_ header: RecordHeader, _ payload: UnsafeRawBufferPointer) {
    let place = staging.base + stagedCount
    let (byteCount, checksum) = header.encode(
      at: place, offset: offset + UInt64(stagedCount), segment: segment)
    if let source = payload.baseAddress {
      // `copyMemory` allows the overlap with a block that was compressed into the staging buffer.
      (place + byteCount).copyMemory(from: source, byteCount: payload.count)
    }
    stagedCount += byteCount + payload.count
    stagedChecksum = checksum
    endsWithIdleRecord = false
  }

  /// Bytes of short records at which the history restarts.
  private static let shortByteCountMax = 1 << 20
  /// The pieces of a segment's file from each of which on a short record shares nothing with those before, so that a
  /// damaged one costs those in its own piece at most.
  static let sharingByteCount: UInt64 = 64 << 10

  /// Stages a short record.
  ///
  /// - Returns: false if the record has to be full, since it is no small set, or since the history restarts.
  private func stageShort(_ payload: UnsafeRawBufferPointer, _ baseTime: Int64) -> Bool {
    // What has read segments of version 0 so far knows no short record.
    guard segment.format.version > 0, !compressor.needsRestart else { return false }
    guard shortByteCount < Self.shortByteCountMax else {
      compressor.restart()
      return false
    }
    let piece = (offset + UInt64(stagedCount)) / Self.sharingByteCount
    if piece != sharingPiece {
      shortPayload.restart()
      sharingPiece = piece
    }
    guard let shared = shortPayload.note(payload) else { return false }
    let raw = shortPayload.bytes()
    let header = RecordHeader(
      kind: .writes, isCompressed: false, isRestart: false, storedByteCount: raw.count - shared,
      rawByteCount: raw.count, firstLSN: stagedLSN.next, count: 1, baseTime: baseTime,
      durableUpTo: durableUpTo, previousChecksum: stagedChecksum,
      payloadChecksum: Checksum.xxh3(raw, seed: segment.salt), isShort: true)
    let start = stagedCount
    stage(header, shortPayload.bytes(from: shared))
    shortByteCount += stagedCount - start
    stagedLSN = header.lastLSN
    stagedRawByteCount += UInt64(payload.count)
    lastTime = baseTime
    return true
  }

  private func restartShort() {
    shortPayload.restart()
    shortByteCount = 0
  }

  func reserveStaging(_ payloadByteCount: Int) {
    let needed = stagedCount + RecordHeader.byteCountMax + payloadByteCount
    if needed > staging.capacity {
      staging.reserve(max(needed, 2 * staging.capacity), keeping: stagedCount)
    }
  }

  func dropStaged() {
    stagedCount = 0
    stagedRawByteCount = 0
    stagedChecksum = checksum
    stagedLSN = lastLSN
    // The history contains the dropped records, which no reader will have.
    compressor.restart()
  }
}
