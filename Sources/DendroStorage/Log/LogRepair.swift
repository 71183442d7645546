/// Repairs the end of a log, so that a writer may continue there.
///
/// Each step may be the last before another crash, and all of them may be done again:
/// 1. bytes that a crash left are copied into a file of their own, durable, if there is room for it;
/// 2. the segment before the last, which may have its seal in the system's memory alone, is
///    synchronized;
/// 3. a segment that was not closed in order is rewritten, up to its last good record, and
///    renamed into its place. Synchronizing it as it is would not do: after a failed
///    synchronize the system may hold pages that it takes for clean and the disk never got
///    (Rebello et al., USENIX ATC 2020), and a later synchronize does not write those. Nor may a
///    record that reads as zeros now come back from the disk later: what is longer than its records
///    is rewritten as well;
///    one that needs none of this is synchronized, since a refused record may have been cut off without
///    that; before, an idle record at its end is written once more over itself: its own synchronize may have
///    failed, and the next record is chained to it;
/// 4. a segment whose successor is there gets the seal that a crash kept from it.
/// - Returns: the end with all of its writes durable.
/// - Complexity: O(bytes of the last segment) where it was not closed in order, else O(1).
package func repairTail(_ directory: DatabaseDirectory, _ end: LogEnd) throws(StorageError)
  -> LogEnd
{
  try directory.checkWritable()
  var end = end
  if let torn = end.torn {
    end.tornFile = try quarantineIfRoom(directory, torn)
  }
  // A process that was killed in a roll may have written the seal without synchronizing it, and no later
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
  // Also where nothing was repaired: the last rename before the crash may not be durable yet.
  try directory.synchronize()
  if let unsealed = end.unsealed {
    try seal(directory, unsealed)
    end.unsealed = nil
  }
  end.durableUpTo = end.lastLSN
  end.isRepaired = true
  return end
}

/// A full disk must not keep a database from being opened: preallocated space behind the torn bytes is freed
/// for their copy, and where even that is too little they are cut without one. They were not acknowledged.
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
    // A full disk must not keep a database from being opened; then the file as it is has to do.
    try directory.fileSystem.remove(at: path + FileName.temporarySuffix)
    try cutInPlace(directory, end)
  }
}

/// Takes to the disk what the system holds of a segment that needs no repair.
private func confirm(_ directory: DatabaseDirectory, _ end: LogEnd) throws(StorageError) {
  let path = directory.path(of: end.segment)
  let file = try directory.fileSystem.open(at: path, .readWrite)
  if end.endsWithIdleRecord {
    // The same bytes over themselves: so the system knows that the disk may not have them.
    try unlessFull { () throws(StorageError) in
      try SegmentReader(end.segment, in: directory).copy(
        from: end.lastOffset, to: end.offset, into: file, path: path, at: end.lastOffset)
    }
  }
  try unlessFull { () throws(StorageError) in try file.synchronize(path: path) }
}

/// Goes on where there is no room for `step`: only a file system that never overwrites needs room for bytes
/// that are there already, and a full disk must not keep a database from being opened.
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
  // The same bytes are there already where a crash came between this and the cut; other bytes
  // that were cut at the same place before are kept as well.
  var name = FileName.tornName(torn.segment, offset: torn.offset, copy: copy)
  while taken.contains(name) {
    let path = directory.path + "/" + name
    if try holdsSame(segment, torn.offset, stop, files.open(at: path, .read), path) {
      // It may have been renamed without its name being durable yet.
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

private func holdsSame(
  _ segment: SegmentReader, _ start: UInt64, _ stop: UInt64, _ file: any File, _ path: String
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
    // Without room for it the log is complete all the same; the next opening tries again.
    if error.isOutOfSpace { return }
    throw error
  }
  try file.synchronize(path: path)
}
