#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#elseif canImport(Darwin)
  import Darwin
#endif

/// Appends records to the log.
///
/// Records are staged in memory, written in one call, and made durable by `synchronize`. Nothing
/// is ever retried blindly: a failed write is cut back, and a failed synchronize or cut poisons the
/// writer, since the system may have dropped the pages (Rebello et al., USENIX ATC 2020).
/// Single-owner; not for two threads at once.
package final class LogWriter {
  private enum State {
    case good
    /// Staged bytes may stand in the file in part: `cutBack` before anything else.
    case needsCut
    case poisoned(StorageError)
    case closed
  }

  private let directory: DatabaseDirectory
  private let options: LogOptions
  private var state = State.good
  private var file: any File
  private var path: String
  private var identity: FileIdentity
  private var pathComparison: PathComparison
  package private(set) var segment: SegmentHeader

  /// Behind the last record that was written.
  private var offset: UInt64
  private var checksum: UInt32
  /// The last write that was written, not counting what is staged.
  package private(set) var lastLSN: LogSequenceNumber
  /// All writes up to here are durable.
  package private(set) var durableUpTo: LogSequenceNumber
  private var lastTime: Int64
  /// The file reads as zeros from `offset` to here.
  private var allocatedEnd: UInt64
  private var preallocationStep: UInt64
  private var hasUnsynchronized = false
  /// Behind the last record that is known to be durable.
  private var synchronizedOffset: UInt64
  private var isMarked = false

  private var compressor = HistoryCompressor()
  private var staging = RawBuffer()
  private var stagedCount = 0
  private var stagedChecksum: UInt32
  private var stagedLSN: LogSequenceNumber

  /// Bytes of payloads as they came, of records with writes that were written.
  package private(set) var rawByteCount: UInt64 = 0
  /// Bytes of all records that were written, headers included.
  package private(set) var storedByteCount: UInt64 = 0
  private var stagedRawByteCount: UInt64 = 0
  package private(set) var synchronizeCount: UInt64 = 0

  /// Why the writer refuses everything, if it does; only reopening the database clears it.
  package var poison: StorageError? {
    if case .poisoned(let error) = state { return error }
    return nil
  }
  /// The write that is to be staged next.
  package var nextLSN: LogSequenceNumber { stagedLSN.next }
  /// The size of the present segment without preallocated space.
  package var segmentByteCount: UInt64 { offset }
  package var segmentName: SegmentName { SegmentName(firstLSN: segment.firstLSN) }
  /// Whether the present segment has outgrown its limit.
  package var wantsRoll: Bool { offset >= options.segmentByteLimit }

  // MARK: - Beginning

  /// Begins the log of a new database; durable when it returns.
  ///
  /// - `lsn`: the last write that a checkpoint beside it holds; zero without one.
  /// - `logChecksum`: of that checkpoint.
  /// - `time`: milliseconds since 1970.
  package static func create(
    _ directory: DatabaseDirectory, databaseID: DatabaseID, after lsn: LogSequenceNumber = .zero,
    logChecksum: UInt32 = 0, time: Int64, options: LogOptions = LogOptions()
  ) throws(StorageError) -> LogWriter {
    let header = SegmentHeader(
      databaseID: databaseID, salt: drawSalt(directory),
      firstLSN: lsn.next, baseTime: time, previousChecksum: logChecksum)
    let file = try createSegment(header, in: directory)
    return try LogWriter(
      directory: directory, options: options, file: file, segment: header,
      offset: UInt64(SegmentHeader.byteCount), checksum: header.checksum, lastLSN: lsn,
      durableUpTo: lsn, lastTime: time, allocatedEnd: UInt64(SegmentHeader.byteCount),
      isMarked: false)
  }

  /// Goes on at the end of a log that `repairTail` has put in order.
  package static func resume(
    _ directory: DatabaseDirectory, end: LogEnd, options: LogOptions = LogOptions()
  ) throws(StorageError) -> LogWriter {
    precondition(end.isRepaired, "a log is repaired before it is written")
    let path = directory.path(of: end.segment)
    let file = try directory.fileSystem.openWhole(path, .readWrite)
    let writer = try LogWriter(
      directory: directory, options: options, file: file, segment: end.segmentHeader,
      offset: end.offset, checksum: end.checksum, lastLSN: end.lastLSN,
      durableUpTo: end.durableUpTo, lastTime: end.lastTime ?? end.segmentHeader.baseTime,
      allocatedEnd: max(end.offset, try file.sizeWhole(path: path)), isMarked: end.isMarked)
    // A mark need not be durable to say that all before it is. But what follows names its checksum,
    // and a new segment's header would be durable before it: then nothing would confirm it any more.
    writer.hasUnsynchronized = true
    return writer
  }

  private init(
    directory: DatabaseDirectory, options: LogOptions, file: any File, segment: SegmentHeader,
    offset: UInt64, checksum: UInt32, lastLSN: LogSequenceNumber, durableUpTo: LogSequenceNumber,
    lastTime: Int64, allocatedEnd: UInt64, isMarked: Bool
  ) throws(StorageError) {
    self.directory = directory
    self.options = options
    self.file = file
    self.segment = segment
    self.offset = offset
    synchronizedOffset = offset
    self.checksum = checksum
    self.lastLSN = lastLSN
    self.durableUpTo = durableUpTo
    self.lastTime = lastTime
    self.allocatedEnd = allocatedEnd
    self.isMarked = isMarked
    path = directory.path(of: SegmentName(firstLSN: segment.firstLSN))
    identity = try file.identityWhole(path: path)
    pathComparison = PathComparison(watch: directory.fileSystem.watch(directory.path))
    preallocationStep = options.preallocationMin
    stagedChecksum = checksum
    stagedLSN = lastLSN
  }

  // MARK: - Appending

  /// Compresses a batch of writes into a record that waits for `write`.
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
    // The header's length depends on the block's: the block goes where the longest header would
    // end, and moves up to the real one.
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
    stagedLSN = header.lastLSN
    stagedRawByteCount += UInt64(payload.count)
    lastTime = baseTime
  }

  /// Writes all that is staged, in one call; durable only after `synchronize`.
  ///
  /// - Throws: `.io` out of space: `cutBack` comes next, and the staged records are gone. Any other
  ///   refusal poisons, after the bytes that got into the file were cut off as far as the disk still lets
  ///   it. `.ownershipLost` poisons likewise.
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
    preallocate(to: end)
    do {
      try file.writeWhole(
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
    allocatedEnd = max(allocatedEnd, end)
    checksum = stagedChecksum
    lastLSN = stagedLSN
    storedByteCount += UInt64(stagedCount)
    rawByteCount += stagedRawByteCount
    stagedRawByteCount = 0
    stagedCount = 0
    hasUnsynchronized = true
    if staging.capacity > 4 * 1024 * 1024 { staging.release() }
  }

  /// Makes all that was written durable. A failure poisons and is never retried.
  package func synchronize() throws(StorageError) {
    try checkGood()
    if !hasUnsynchronized { return }
    do {
      try file.synchronizeWhole(path: path)
    } catch {
      throw poison(error)
    }
    noteSynchronized()
  }

  private func noteSynchronized() {
    synchronizeCount += 1
    hasUnsynchronized = false
    synchronizedOffset = offset
    durableUpTo = lastLSN
  }

  /// Cuts the segment back to the last record that was written whole, and synchronizes: after a
  /// `write` without room. The writer is as before that `write` then; staged records are dropped.
  ///
  /// - Throws: the error of the disk; the writer is poisoned then.
  package func cutBack() throws(StorageError) {
    switch state {
    case .good, .needsCut: break
    case .poisoned, .closed: try checkGood()
    }
    dropStaged()
    do {
      try checkIdentity()
      try file.truncateWhole(to: offset, path: path)
      try file.synchronizeWhole(path: path)
    } catch {
      throw poison(error)
    }
    allocatedEnd = offset
    noteSynchronized()
    state = .good
  }

  /// After a write that failed half way. Whole records of the refused batch may stand in the file, and
  /// recovery would take them for the batch of a writer that was killed.
  private func cutRefused() {
    do {
      try checkIdentity()
      try file.truncateWhole(to: offset, path: path)
      try file.synchronizeWhole(path: path)
    } catch {
      // Recovery judges what stays.
    }
  }

  /// Gives up for good after a failure: poisons where nothing has yet, and where nobody was told of what
  /// is not synchronized, takes it out of the file as far as the disk still lets it, so that reopening
  /// finds what was acknowledged and no more. Not synchronized: what a crash then leaves is a write that
  /// did not return, whole or not at all.
  package func abandon(_ cause: StorageError, dropsUnsynchronized: Bool) {
    _ = poison(cause)
    guard dropsUnsynchronized, offset > synchronizedOffset else { return }
    do {
      // Another opener may have appended behind what we know, if the lock was taken from us.
      try checkIdentity()
      try file.truncateWhole(to: synchronizedOffset, path: path)
    } catch {
      // Recovery judges it.
    }
  }

  /// After a full disk: whether there is room for another `byteCount` bytes now. They stay
  /// preallocated for the next records.
  package func probe(byteCount: Int = 64 * 1024) throws(StorageError) -> Bool {
    try checkGood()
    let end = offset + UInt64(stagedCount) + UInt64(byteCount)
    if end <= allocatedEnd { return true }
    let start = allocatedEnd
    do throws(StorageError) {
      do {
        try whole("preallocate", path, at: start) { () throws(SystemError) in
          try self.file.preallocate(from: start, count: end - start)
        }
      } catch {
        if error.isOutOfSpace { throw error }
        // Where the file system cannot, zeros written out say the same.
        var zeros = RawBuffer()
        zeros.reserve(byteCount)
        zeros.base.initializeMemory(as: UInt8.self, repeating: 0, count: byteCount)
        try file.writeWhole(
          UnsafeRawBufferPointer(start: zeros.base, count: byteCount),
          at: end - UInt64(byteCount), path: path)
      }
    } catch {
      if error.isOutOfSpace {
        try cutBack()
        return false
      }
      throw poison(error)
    }
    allocatedEnd = end
    return true
  }

  /// Appends a record that says how far the log is durable, so that damage of the last batch is
  /// told from a crash: when writing pauses, and at the end. Not synchronized: a mark that a crash takes
  /// does no harm. Does nothing where the last record says it already.
  package func mark() throws(StorageError) {
    try checkGood()
    precondition(stagedCount == 0, "staged records are written before a mark")
    if isMarked && durableUpTo == lastLSN || lastLSN == .zero { return }
    reserveStaging(0)
    stage(
      RecordHeader(
        kind: .mark, isCompressed: false, isRestart: false, storedByteCount: 0, rawByteCount: 0,
        firstLSN: lastLSN.next, count: 0, baseTime: lastTime, durableUpTo: durableUpTo,
        previousChecksum: stagedChecksum,
        payloadChecksum: Checksum.xxh3(
          UnsafeRawBufferPointer(start: nil, count: 0), seed: segment.salt)),
      UnsafeRawBufferPointer(start: nil, count: 0))
    let isComplete = durableUpTo == lastLSN
    do {
      try write()
    } catch {
      // A mark is a courtesy: that there is no room for it fails nothing.
      guard error.isOutOfSpace else { throw error }
      return try cutBack()
    }
    isMarked = isComplete
  }

  // MARK: - Segments

  /// Seals the segment and goes on in a new one; all that was written is durable then. Does nothing
  /// while the present segment has no writes.
  ///
  /// - Parameter time: the new segment's base time.
  /// - Throws: `.io` out of space: the writer goes on in the present segment. Else it is poisoned.
  package func roll(time: Int64) throws(StorageError) {
    try checkGood()
    precondition(stagedCount == 0, "staged records are written before a roll")
    if lastLSN < segment.firstLSN { return }
    try synchronize()
    let header = SegmentHeader(
      databaseID: segment.databaseID, salt: Self.drawSalt(directory),
      firstLSN: lastLSN.next, baseTime: time, previousChecksum: checksum)
    // Room for the seal first: once the successor exists, its predecessor must get one.
    let sealRoom = UInt64(RecordHeader.byteCountMax + Seal.byteCount)
    guard try probe(byteCount: Int(sealRoom)) else {
      throw .io(operation: "preallocate", path: path, offset: offset, error: .noSpace)
    }
    let successor: any File
    do {
      successor = try Self.createSegment(header, in: directory)
    } catch {
      try abandon(header, error)
    }
    do {
      let size = try appendSeal(
        file: file, path: path, segment: segment, offset: offset, checksum: checksum,
        lastLSN: lastLSN, time: lastTime, successorChecksum: header.checksum)
      try file.truncateWhole(to: size, path: path)
      storedByteCount += size - offset
      offset = size
    } catch {
      try abandon(header, error)
    }
    do {
      try file.synchronizeWhole(path: path)
    } catch {
      throw poison(error)
    }
    synchronizeCount += 1
    file = successor
    path = directory.path(of: SegmentName(firstLSN: header.firstLSN))
    do {
      identity = try file.identityWhole(path: path)
    } catch {
      throw poison(error)
    }
    segment = header
    offset = UInt64(SegmentHeader.byteCount)
    synchronizedOffset = offset
    allocatedEnd = offset
    preallocationStep = options.preallocationMin
    checksum = header.checksum
    stagedChecksum = checksum
    isMarked = false
    compressor.restart()
  }

  /// Ends the log in order: everything durable, a mark, no preallocated space. Idempotent; the
  /// writer refuses all else afterwards. A poisoned writer only lets go of its file.
  package func close() throws(StorageError) {
    switch state {
    case .closed, .poisoned:
      return
    case .needsCut:
      try cutBack()
    case .good:
      break
    }
    dropStaged()
    try synchronize()
    try mark()
    if allocatedEnd > offset {
      do {
        try checkIdentity()
        try file.truncateWhole(to: offset, path: path)
      } catch {
        throw poison(error)
      }
      allocatedEnd = offset
      hasUnsynchronized = true
    }
    try synchronize()
    state = .closed
  }

  // MARK: - Parts

  /// A segment that is there whole or not at all: written aside, synchronized, renamed, and its name
  /// made durable.
  private static func createSegment(_ header: SegmentHeader, in directory: DatabaseDirectory)
    throws(StorageError) -> any File
  {
    try directory.checkOwnership()
    let files = directory.fileSystem
    let path = directory.path(of: SegmentName(firstLSN: header.firstLSN))
    let aside = path + FileName.temporarySuffix
    try files.removeWhole(aside)
    let file = try files.openWhole(aside, .create)
    var bytes = ByteWriter()
    header.encode(into: &bytes)
    try file.writeWhole(bytes.bytes, at: 0, path: aside)
    try file.synchronizeWhole(path: aside)
    try files.renameWhole(aside, to: path)
    try files.synchronizeDirectoryWhole(directory.path)
    return file
  }

  private static func drawSalt(_ directory: DatabaseDirectory) -> UInt64 {
    directory.environment.randomness.next()
  }

  /// Takes back a roll for which there was no room; any other trouble, now or before, poisons.
  private func abandon(_ header: SegmentHeader, _ cause: StorageError) throws(StorageError) -> Never
  {
    guard cause.isOutOfSpace else { throw poison(cause) }
    // The seal first: a successor without it is what a crash in a roll leaves, while a seal without
    // its successor says that one is missing.
    try cutBack()
    let path = directory.path(of: SegmentName(firstLSN: header.firstLSN))
    do {
      try directory.fileSystem.removeWhole(path + FileName.temporarySuffix)
      try directory.fileSystem.removeWhole(path)
      try directory.fileSystem.synchronizeDirectoryWhole(directory.path)
    } catch {
      throw poison(error)
    }
    throw cause
  }

  private func stage(_ header: RecordHeader, _ payload: UnsafeRawBufferPointer) {
    let place = staging.base + stagedCount
    let (byteCount, checksum) = header.encode(
      at: place, offset: offset + UInt64(stagedCount), segment: segment)
    if let source = payload.baseAddress {
      // Overlapping where the block stands there already.
      memmove(place + byteCount, source, payload.count)
    }
    stagedCount += byteCount + payload.count
    stagedChecksum = checksum
    isMarked = false
  }

  private func reserveStaging(_ payloadByteCount: Int) {
    let needed = stagedCount + RecordHeader.byteCountMax + payloadByteCount
    if needed > staging.capacity {
      staging.reserve(max(needed, 2 * staging.capacity), keeping: stagedCount)
    }
  }

  private func dropStaged() {
    stagedCount = 0
    stagedRawByteCount = 0
    stagedChecksum = checksum
    stagedLSN = lastLSN
    // What was dropped is in the compressor's history and will be in no reader's.
    compressor.restart()
  }

  /// Takes space ahead, so that a synchronize need not make the file's new size durable as well.
  /// Only a convenience: where it fails, the write itself tells whether there is room.
  private func preallocate(to end: UInt64) {
    guard end > allocatedEnd, preallocationStep > 0 else { return }
    let start = allocatedEnd
    let step = max(preallocationStep, end - start)
    do {
      try whole("preallocate", path, at: start) { () throws(SystemError) in
        try self.file.preallocate(from: start, count: step)
      }
      allocatedEnd = start + step
      preallocationStep = min(2 * preallocationStep, options.preallocationMax)
    } catch {
      // Out of space, the next attempt asks for less; elsewhere the file system cannot at all.
      preallocationStep = error.isOutOfSpace ? preallocationStep / 2 : 0
      if preallocationStep < 4096 { preallocationStep = 0 }
    }
  }

  private func checkIdentity() throws(StorageError) {
    try directory.checkOwnership()
    let found: FileIdentity
    do {
      found = try directory.fileSystem.identityWhole(path)
    } catch {
      if case .io(_, _, _, .noSuchFile) = error {
        throw .ownershipLost(path: path, reason: "the segment was moved or removed")
      }
      throw error
    }
    if found != identity {
      throw .ownershipLost(path: path, reason: "another file stands there now")
    }
  }

  private func checkGood() throws(StorageError) {
    switch state {
    case .good: return
    case .needsCut:
      throw .io(operation: "write before the cut", path: path, offset: offset, error: .noSpace)
    case .poisoned(let error): throw error
    case .closed:
      throw .ownershipLost(path: path, reason: "the log was closed")
    }
  }

  private func poison(_ error: StorageError) -> StorageError {
    if case .poisoned(let first) = state { return first }
    state = .poisoned(error)
    dropStaged()
    return error
  }
}

/// Writes a seal and returns where it ends.
func appendSeal(
  file: any File, path: String, segment: SegmentHeader, offset: UInt64, checksum: UInt32,
  lastLSN: LogSequenceNumber, time: Int64, successorChecksum: UInt32
) throws(StorageError) -> UInt64 {
  var payload = ByteWriter()
  payload.uint32(successorChecksum)
  var bytes = RawBuffer()
  bytes.reserve(RecordHeader.byteCountMax + Seal.byteCount)
  // Everything before a seal was synchronized before it.
  let header = RecordHeader(
    kind: .seal, isCompressed: false, isRestart: false, storedByteCount: Seal.byteCount,
    rawByteCount: Seal.byteCount, firstLSN: lastLSN.next, count: 0, baseTime: time,
    durableUpTo: lastLSN, previousChecksum: checksum,
    payloadChecksum: Checksum.xxh3(payload.bytes, seed: segment.salt))
  let (byteCount, _) = header.encode(at: bytes.base, offset: offset, segment: segment)
  (bytes.base + byteCount).copyMemory(
    from: payload.bytes.baseAddress!, byteCount: Seal.byteCount)
  let end = offset + UInt64(byteCount + Seal.byteCount)
  try file.writeWhole(
    UnsafeRawBufferPointer(start: bytes.base, count: byteCount + Seal.byteCount), at: offset,
    path: path)
  return end
}
