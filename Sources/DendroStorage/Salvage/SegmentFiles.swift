/// Finds out of each segment's file whose it is, and where its records stand; sorts out those that are not of the log.
struct SegmentFiles {
  private struct Lost {
    var name: SegmentName
    var path: String
    var fault: LogCursor.Problem
  }

  private struct Known {
    var name: SegmentName
    var header: SegmentHeader
    var path: String
    var isTimeGuessed = false
  }

  private let directory: DatabaseDirectory
  private var known: [Known] = []
  private var lost: [Lost] = []
  /// By the writes that they end with.
  private var checkpoints: [LogSequenceNumber: CheckpointHeader] = [:]
  private(set) var problems: [LogCursor.Problem] = []
  private(set) var databaseID: DatabaseID?
  /// Those of the log, in the order of their first writes.
  private(set) var segments: [LogSalvage.Segment] = []
  /// Those with other writes under the same numbers.
  private(set) var forks: [LogSalvage.Segment] = []

  init(_ directory: DatabaseDirectory) { self.directory = directory }

  /// Reads the header of a file.
  mutating func add(_ name: SegmentName) throws(StorageError) {
    let path = directory.path(of: name)
    let bytes = try SegmentHeader.bytes(at: path, in: directory)
    do throws(StorageError) {
      let header = try SegmentHeader(decoding: bytes, path: path)
      if header.firstLSN != name.firstLSN {
        problems.append(
          LogCursor.Problem(
            path: path, offset: 40, expected: "first LSN \(name.firstLSN), as the name says",
            found: "\(header.firstLSN)"))
      }
      known.append(Known(name: name, header: header, path: path))
    } catch {
      guard var fault = LogCursor.Problem(error) else { throw error }
      let header = bytes.withUnsafeBytes { bytes in
        correctedByOneBit(bytes) { try? SegmentHeader(decoding: $0, path: path) }
      }
      guard let header else { return lost.append(Lost(name: name, path: path, fault: fault)) }
      fault.found += "; one bit has changed, and which one is known"
      problems.append(fault)
      known.append(Known(name: name, header: header, path: path))
    }
  }

  /// Chooses the files of the log: of the database to which most files belong, and of two with the same writes the one
  /// that its neighbours confirm.
  ///
  /// - Parameter checkpoints: their headers.
  mutating func choose(_ checkpoints: [CheckpointHeader]) throws(StorageError) {
    databaseID = DatabaseID.mostFrequent(
      known.map(\.header.databaseID) + checkpoints.map(\.databaseID))
    for header in checkpoints where header.databaseID == databaseID {
      self.checkpoints[header.lsn] = header
    }
    for file in known where file.header.databaseID != databaseID {
      problems.append(
        LogCursor.Problem(
          path: file.path, offset: 16,
          expected: databaseID.map { "database \($0)" } ?? "a database",
          found: "\(file.header.databaseID)"))
    }
    known.removeAll { $0.header.databaseID != databaseID }
    for file in known { segments.append(try segment(file)) }
    sort()
    for file in lost { try find(file) }
    sort()
    try leaveOutForks()
  }

  private func segment(_ file: Known) throws(StorageError) -> LogSalvage.Segment {
    let reader = try SegmentReader(file.header, at: file.path, in: directory)
    return LogSalvage.Segment(
      header: file.header, path: file.path, byteCount: reader.byteCount,
      isTimeGuessed: file.isTimeGuessed, map: try SegmentMapper.map(of: reader))
  }

  /// Of two files with the same header, the one under its own name comes first.
  private mutating func sort() {
    segments = segments.enumerated().sorted { a, b in
      (a.element.header.firstLSN, isMisnamed(a.element) ? 1 : 0, a.offset)
        < (b.element.header.firstLSN, isMisnamed(b.element) ? 1 : 0, b.offset)
    }.map(\.element)
  }

  private func isMisnamed(_ segment: LogSalvage.Segment) -> Bool {
    segment.path != directory.path(of: SegmentName(firstLSN: segment.header.firstLSN))
  }

  // MARK: Lost headers

  /// Finds the header of a file by its records and by the segments around it: the file may have a wrong name, too.
  private mutating func find(_ file: Lost) throws(StorageError) {
    var fault = file.fault
    let taken = Set(segments.map(\.header.firstLSN))
    let ends =
      segments.compactMap(\.map.end?.lastLSN) + checkpoints.keys.sorted() + [.zero]
    var candidates = ([file.name.firstLSN] + ends.map(\.next)).filter { !taken.contains($0) }
    if candidates.count > Self.candidateCountMax { candidates = [file.name.firstLSN] }
    var guess: LostHeader.Found?
    for first in candidates {
      guard let found = try header(of: file, from: first) else { continue }
      if !found.isTimeGuessed {
        guess = found
        break
      }
      if guess == nil { guess = found }
    }
    guard let found = guess else { return problems.append(fault) }
    fault.found += "; its records show what it was"
    if found.isTimeGuessed {
      fault.found += ", but for the time of its writes, which is a guess"
      if !found.isPlaceKnown {
        fault.found += "; that they begin with write \(found.header.firstLSN), only its name says"
      }
    }
    problems.append(fault)
    segments.append(
      try segment(
        Known(
          name: file.name, header: found.header, path: file.path,
          isTimeGuessed: found.isTimeGuessed)))
    sort()
  }

  /// How many places in the log are tried for a file without a header.
  private static let candidateCountMax = 64

  /// The header of a file if it begins with this write; nil if that cannot be.
  private func header(
    of file: Lost, from first: LogSequenceNumber
  ) throws(StorageError) -> LostHeader.Found? {
    let before = segments.last { $0.header.firstLSN < first }
    let after = segments.first { $0.header.firstLSN > first }
    let end = before?.map.end
    let isBehindEnd = end?.lastLSN.next == first
    let checkpoint = checkpoints[first.previous]
    let surroundings = LostHeader.Surroundings(
      firstLSN: first,
      // If no file says which database it is, a repair draws a new id.
      databaseID: databaseID ?? DatabaseID(high: 0, low: 0),
      previousChecksum: (isBehindEnd ? end?.checksum : checkpoint?.logChecksum) ?? 0,
      timeBefore: isBehindEnd ? end?.time : checkpoint?.time ?? end?.time,
      timeBehind: after?.header.baseTime,
      hasSecondRoot: before?.header.format.hasSecondRoot
        ?? after?.header.format.hasSecondRoot ?? true)
    guard var found = try LostHeader.found(in: directory, at: file.path, surroundings) else {
      return nil
    }
    if !found.isTimeGuessed { return found }
    // The next segment confirms it, or the file's name says so and nothing against it.
    let last = found.end?.lastLSN ?? first.previous
    if let after, let end = found.end, after.header.firstLSN == last.next,
      after.header.previousChecksum == end.checksum
    {
      found.isPlaceKnown = true
      return found
    }
    let isBefore = after.map { last < $0.header.firstLSN } ?? true
    return first == file.name.firstLSN && isBefore ? found : nil
  }

  // MARK: Forks

  /// Of files with other records under the same numbers, keeps the one that its neighbours confirm.
  private mutating func leaveOutForks() throws(StorageError) {
    var kept: [LogSalvage.Segment] = []
    var index = 0
    while index < segments.count {
      let first = segments[index].header.firstLSN
      let rivals = segments[index...].prefix { $0.header.firstLSN == first }
      index += rivals.count
      let next = index < segments.count ? segments[index].header : nil
      let before = kept.last?.map.end
      func rank(_ segment: LogSalvage.Segment) -> Int {
        var rank = isMisnamed(segment) ? 0 : 1
        if let before, segment.header.previousChecksum == before.checksum { rank += 2 }
        if let next, let end = segment.map.end, next.previousChecksum == end.checksum { rank += 4 }
        return rank
      }
      guard let best = rivals.max(by: { rank($0) < rank($1) }) else { continue }
      for segment in rivals {
        if try isFork(segment, of: best) {
          forks.append(segment)
          problems.append(
            LogCursor.Problem(
              path: segment.path, offset: 32, expected: "the log that \(best.path) belongs to",
              found: "another one with the same numbers"))
        } else {
          kept.append(segment)
        }
      }
    }
    segments = kept
  }

  /// Whether a file has other records than one with the same first write. If one of them is the beginning of the other,
  /// it is a copy.
  private func isFork(
    _ segment: LogSalvage.Segment, of other: LogSalvage.Segment
  ) throws(StorageError) -> Bool {
    if segment.path == other.path { return false }
    if segment.header != other.header { return true }
    guard let end = segment.map.end, let otherEnd = other.map.end else { return false }
    let isShorter = end.lastLSN <= otherEnd.lastLSN
    let last = isShorter ? end : otherEnd
    guard let expected = last.writeChecksum else { return false }
    let found = try checksum(of: last.lastLSN, in: isShorter ? other : segment)
    return found.map { $0 != expected } ?? false
  }

  /// The checksum of the record that ends with a write; nil if there is none.
  private func checksum(
    of lsn: LogSequenceNumber, in segment: LogSalvage.Segment
  ) throws(StorageError) -> UInt32? {
    let reader = try segment.reader(in: directory)
    var found: UInt32?
    for stretch in segment.map.stretches
    where stretch.firstLSN <= lsn && lsn <= stretch.lastLSN {
      try stretch.forEachRecord(of: reader) { record in
        if found == nil, record.kind == .writes, record.lastLSN == lsn { found = record.checksum }
      }
    }
    return found
  }
}
