/// Repairs the end of a log, so that a writer may continue there.
///
/// A crash may come after any of these steps, and all of them can be repeated:
/// 1. Torn bytes are copied into a file of their own, durably, if there is room for it.
/// 2. The segment before the last is synchronized, since its seal may be in the system's memory alone.
/// 3. The last segment:
///    - If it was not closed in order, or is longer than its records, it is rewritten up to its last good
///      record, and renamed into its place. To synchronize it would not be enough: after a failed
///      synchronize the system may hold pages as clean that the disk never got (Rebello et al., USENIX ATC
///      2020), and a later synchronize does not write those. Nor may a record that reads as zeros now come
///      back from the disk later.
///    - Otherwise it is synchronized, since the cut of a refused record may not have been. Before, an idle
///      record at its end is written over itself: its own synchronize may have failed, and the next record
///      repeats its checksum.
/// 4. A segment that has a successor, but lacks its seal because of a crash, is sealed.
///
/// - Returns: the end with all of its writes durable.
/// - Complexity: O(bytes of the last segment) if it was not closed in order, else O(1).
package func repairTail(_ directory: DatabaseDirectory, _ end: LogEnd) throws(StorageError)
  -> LogEnd
{
  try directory.checkWritable()
  var end = end
  if let torn = end.torn {
    end.tornFile = try quarantineIfRoom(directory, torn)
  }
  // A process that was killed during a roll may have written the seal without synchronizing it, and no later
  // step touches that segment.
  if !end.endsWithIdleRecord, end.segments.count > 1 {
    try synchronize(end.segments[end.segments.count - 2].name, directory)
  }
  let isLonger = (end.segments.last?.byteCount ?? 0) > end.offset
  let isUnproven = end.durableUpTo < end.lastLSN
  if isUnproven || end.torn != nil || isLonger {
    try rewrite(directory, end)
  } else {
    try confirm(directory, end)
  }
  // Also if nothing was repaired: the last rename before the crash may not be durable yet.
  try directory.synchronize()
  if let unsealed = end.unsealed {
    try seal(directory, unsealed)
    end.unsealed = nil
  }
  end.durableUpTo = end.lastLSN
  end.isRepaired = true
  return end
}

/// Quarantines the torn bytes. A full disk must not prevent opening: then the preallocated space behind them
/// is freed for the copy, and if that is not enough they are cut without one. They were not acknowledged.
private func quarantineIfRoom(_ directory: DatabaseDirectory, _ torn: TornTail) throws(StorageError)
  -> String?
{
  do {
    return try quarantine(directory, torn)
  } catch {
    guard error.isOutOfSpace else { throw error }
  }
  let path = directory.path(of: torn.segment)
  let file = try directory.fileSystem.open(at: path, .readWrite)
  try file.truncate(to: torn.offset + torn.byteCount, path: path)
  do {
    return try quarantine(directory, torn)
  } catch {
    guard error.isOutOfSpace else { throw error }
    for name in try directory.contents().temporaries {
      try directory.fileSystem.remove(at: directory.path + "/" + name)
    }
    return nil
  }
}

private func rewrite(_ directory: DatabaseDirectory, _ end: LogEnd) throws(StorageError) {
  let path = directory.path(of: end.segment)
  do {
    let target = try NewFile(path, in: directory)
    try SegmentReader(end.segment, in: directory).copy(
      from: 0, to: end.offset, into: target.file, path: target.temporaryPath)
    try target.publish()
  } catch {
    guard error.isOutOfSpace else { throw error }
    // A full disk must not prevent opening: the file is cut in place instead.
    try directory.fileSystem.remove(at: path + FileName.temporarySuffix)
    try cutInPlace(directory, end)
  }
}

/// Makes a segment that needs no repair durable.
private func confirm(_ directory: DatabaseDirectory, _ end: LogEnd) throws(StorageError) {
  let path = directory.path(of: end.segment)
  let file = try directory.fileSystem.open(at: path, .readWrite)
  if end.endsWithIdleRecord {
    // Writing the same bytes marks their pages as dirty, so that the next synchronize writes them.
    try unlessFull { () throws(StorageError) in
      try SegmentReader(end.segment, in: directory).copy(
        from: end.lastOffset, to: end.offset, into: file, path: path, at: end.lastOffset)
    }
  }
  try unlessFull { () throws(StorageError) in try file.synchronize(path: path) }
}

/// Ignores that there is no room for `step`: only a copy-on-write file system needs room to overwrite bytes,
/// and a full disk must not prevent opening.
private func unlessFull(_ step: () throws(StorageError) -> Void) throws(StorageError) {
  do {
    try step()
  } catch {
    if !error.isOutOfSpace { throw error }
  }
}

private func synchronize(_ segment: SegmentName, _ directory: DatabaseDirectory)
  throws(StorageError)
{
  let path = directory.path(of: segment)
  try directory.fileSystem.open(at: path, .readWrite).synchronize(path: path)
}

private func cutInPlace(_ directory: DatabaseDirectory, _ end: LogEnd) throws(StorageError) {
  let path = directory.path(of: end.segment)
  let file = try directory.fileSystem.open(at: path, .readWrite)
  try file.truncate(to: end.offset, path: path)
  try file.synchronize(path: path)
}

private func quarantine(_ directory: DatabaseDirectory, _ torn: TornTail) throws(StorageError)
  -> String
{
  let files = directory.fileSystem
  let segment = try SegmentReader(torn.segment, in: directory)
  let stop = torn.offset + torn.byteCount
  let taken = Set(try directory.contents().tornFiles)
  var copy: UInt64 = 0
  // After a crash between this and the cut, a file with the same bytes exists already. A file with other
  // bytes, which were cut at the same offset before, is kept as well.
  var name = FileName.tornName(torn.segment, offset: torn.offset, copy: copy)
  while taken.contains(name) {
    let path = directory.path + "/" + name
    let file = try files.open(at: path, .read)
    if try isCopy(file, path: path, of: segment, from: torn.offset, to: stop) {
      // Its name may not be durable yet.
      try directory.synchronize()
      return name
    }
    copy += 1
    name = FileName.tornName(torn.segment, offset: torn.offset, copy: copy)
  }
  let target = try NewFile(directory.path + "/" + name, in: directory)
  try segment.copy(from: torn.offset, to: stop, into: target.file, path: target.temporaryPath)
  try target.publish()
  try directory.pruneTornFiles()
  return name
}

private func isCopy(
  _ file: any File, path: String, of segment: SegmentReader, from start: UInt64, to stop: UInt64
) throws(StorageError) -> Bool {
  guard try file.size(path: path) == stop - start else { return false }
  var buffer = RawBuffer()
  buffer.reserve(64 * 1024)
  var place = start
  while place < stop {
    let wanted = Int(min(stop - place, 64 * 1024))
    let count = try file.readFully(
      into: UnsafeMutableRawBufferPointer(start: buffer.base, count: wanted), at: place - start,
      path: path)
    let bytes = try segment.bytes(at: place, count: wanted)
    guard count == wanted, bytes.count >= wanted,
      isPrefixed(bytes, by: UnsafeRawBufferPointer(start: buffer.base, count: wanted))
    else { return false }
    place += UInt64(wanted)
  }
  return true
}

private func seal(_ directory: DatabaseDirectory, _ unsealed: UnsealedSegment) throws(StorageError)
{
  let path = directory.path(of: unsealed.segment)
  let file = try directory.fileSystem.open(at: path, .readWrite)
  do {
    try file.truncate(to: unsealed.offset, path: path)
    _ = try appendSeal(
      file: file, path: path, segment: unsealed.header, offset: unsealed.offset,
      checksum: unsealed.checksum, lastLSN: unsealed.lastLSN, time: unsealed.baseTime,
      successorChecksum: unsealed.successorChecksum)
  } catch {
    // The log is complete without a seal; the next opening tries again.
    if error.isOutOfSpace { return }
    throw error
  }
  try file.synchronize(path: path)
}
