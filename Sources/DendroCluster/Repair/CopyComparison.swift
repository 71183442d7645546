import DendroEngine
import DendroStorage

/// Compares a server's copy of the log with PostgreSQL's log, and finds what that lacks.
struct CopyComparison {
  /// Of the server.
  let directory: String
  let copy: CopyFile
  /// The last write that the files of the copy have.
  let last: LogSequenceNumber
  let session: ClusterSession

  private var reader: CopyReader { CopyReader(path: CopyFile.dataDirectory(in: directory)) }

  /// - Returns: nil if PostgreSQL lacks nothing, or if the copy can be compared with nothing: a server that is started moves
  ///   such a copy aside by itself.
  func run() throws(ClusterError) -> CopyDifference? {
    guard let known = copy.position else { return nil }
    let head = try session.head().position
    let end = max(last, known.lsn)
    guard end > head.lsn else {
      return try isOther(known, head) ? other(head, end) : nil
    }
    var difference = CopyDifference(
      kind: .unproven("the directory has lost them itself"), common: head.lsn, sharedLSN: head.lsn,
      last: end)
    guard last > head.lsn else { return difference }
    do throws(ClusterError) {
      switch try isBeginning(head) {
      case true?: difference.kind = .beginning(head)
      case false?: return try other(head, end)
      case nil:
        difference.kind = .unproven("it cannot be proved that the directory has a copy of this log")
      }
    } catch {
      guard case .engine = error else { throw error }
      difference.kind = .unproven("not all of them can be read from the directory (\(error))")
    }
    // Only what the files have can be put back.
    if case .beginning = difference.kind {
      difference.last = last
      if last < known.lsn { difference.lost = last.next.rawValue...known.lsn.rawValue }
    }
    return difference
  }

  /// Whether PostgreSQL's log is not the one that the copy is of, although it is as long.
  private func isOther(_ known: LogPosition, _ head: LogPosition) throws(ClusterError) -> Bool {
    guard let shared = try chain(at: known.lsn, head) else {
      // The copy ends with a batch: a log in which none ends there has others.
      return try session.spans(known.lsn)
    }
    if shared != known.chain { return true }
    guard last > known.lsn, let shared = try chain(at: last, head),
      let own = try? chain(behind: known, upTo: last)
    else { return false }
    return shared != own
  }

  /// Whether PostgreSQL's log is the beginning of the copy: a chain that is followed along the copy's records, from the end
  /// of the one to a position at which the other is known, is the same there. Nil if no position can tell.
  private func isBeginning(_ head: LogPosition) throws(ClusterError) -> Bool? {
    let positions = copy.positions.filter { $0.lsn <= last }
    if let known = positions.first(where: { $0.lsn >= head.lsn }) {
      return try chain(behind: head, upTo: known.lsn) == known.chain
    }
    // After a power loss the file may have an older position than the log.
    guard let known = positions.first else { return nil }
    return try chain(behind: known, upTo: head.lsn) == head.chain
  }

  private func chain(
    at lsn: LogSequenceNumber, _ head: LogPosition
  ) throws(ClusterError) -> LogChain? {
    lsn == head.lsn ? head.chain : try session.chain(at: lsn)
  }

  /// The chain behind the copy's records from a position on.
  private func chain(
    behind start: LogPosition, upTo end: LogSequenceNumber
  ) throws(ClusterError) -> LogChain {
    var chain = start.chain
    try reader.records(behind: start.lsn, upTo: end) { chain = chain.appending($0) }
    return chain
  }

  // MARK: Where two logs part

  private func other(
    _ head: LogPosition, _ end: LogSequenceNumber
  ) throws(ClusterError) -> CopyDifference {
    CopyDifference(kind: .other, common: try? lastCommon(), sharedLSN: head.lsn, last: end)
  }

  /// The last write up to which both logs have the same records, as far as both still have them; nil if they have none in
  /// common.
  private func lastCommon() throws(ClusterError) -> LogSequenceNumber? {
    var shared = SharedRecords(session)
    var common: LogSequenceNumber?
    try reader.recordsThatAreLeft(upTo: last) { (own) throws(ClusterError) in
      guard let other = try shared.next(from: own.firstLSN) else { return false }
      // The copy goes back further.
      if other.firstLSN > own.firstLSN, common == nil { return true }
      guard other == own else {
        if own.firstLSN == LogSequenceNumber.zero.next { common = .zero }
        return false
      }
      common = own.lastLSN
      return true
    }
    return common
  }
}

/// The records of PostgreSQL's log in their order.
private struct SharedRecords {
  private let session: ClusterSession
  private var position = LogSequenceNumber.zero
  private var records: [Record] = []
  private var index = 0

  struct Record {
    let firstLSN: LogSequenceNumber
    let count: Int
    let baseTime: Int64
    let payload: [UInt8]

    static func == (one: Record, other: SharedRecord) -> Bool {
      one.firstLSN == other.firstLSN && one.count == other.count && one.baseTime == other.baseTime
        && other.payload.elementsEqual(one.payload)
    }
  }

  init(_ session: ClusterSession) { self.session = session }

  /// The first record that begins with a write, or later; nil at the end of the log.
  mutating func next(from lsn: LogSequenceNumber) throws(ClusterError) -> Record? {
    while true {
      while index < records.count {
        if records[index].firstLSN >= lsn { return records[index] }
        index += 1
      }
      let batches = try session.batches(behind: position)
      guard let last = batches.last else { return nil }
      position = last.end.lsn
      records = []
      index = 0
      for batch in batches {
        try BatchBody.decode(batch.body, firstLSN: batch.firstLSN) { decoded in
          records += decoded.map {
            Record(
              firstLSN: $0.firstLSN, count: $0.count, baseTime: $0.baseTime,
              payload: Array($0.payload))
          }
        }
      }
    }
  }
}
