import Synchronization

/// Says which records of a log are wanted. Not for two threads at once.
package protocol RecordFilter: AnyObject {
  /// Whether a record with writes has to be visited; true also if its payload cannot be decoded.
  func wants(_ record: RecordInfo, _ payload: UnsafeRawBufferPointer) -> Bool
  /// The time of the last write in the records that were not wanted, milliseconds since 1970.
  var lastTime: Int64 { get }
}

/// How a log is read at two places at once, for a visitor that wants few of its records.
package struct ParallelReading: Sendable {
  /// Runs a function on another thread, and returns one that waits for its end.
  package var run: @Sendable (@escaping @Sendable () -> Void) -> () -> Void
  /// Makes the filter of one thread.
  package var makeFilter: @Sendable () -> any RecordFilter
  /// Bytes of a segment that are left to read, below which it is read at one place.
  package var byteCountMin: UInt64 = 4 << 20

  package init(
    run: @escaping @Sendable (@escaping @Sendable () -> Void) -> () -> Void,
    makeFilter: @escaping @Sendable () -> any RecordFilter
  ) {
    self.run = run
    self.makeFilter = makeFilter
  }
}

/// A part of a segment, which another thread reads while a walk is still in front of it.
///
/// It begins and ends at records at which decompression can begin, so that the walk goes on behind it without what
/// was read there. All of it is checked as the walk checks records, but for the link of its first record to the one
/// before: the walk compares that when it gets there, and reads the part itself if it is another.
final class ReadAhead: @unchecked Sendable {
  // Unchecked: until `wait()` has returned, only `run()` uses the variables; after that, only the walk.

  /// Bytes of wanted payloads in memory, beyond which the part ends.
  private static let wantedByteLimit = 16 << 20

  /// The record with which the part begins.
  let first: RecordInfo
  /// The last record of the part; nil if the part is empty.
  private(set) var last: RecordInfo?
  /// The records that are wanted, with their payloads.
  private(set) var wanted: [(record: RecordInfo, payload: [UInt8])] = []
  /// The highest durable-up-to of the part's headers.
  private(set) var durableUpTo = LogSequenceNumber.zero
  /// The time of the last write in the part's records that are not wanted; nil if all are.
  private(set) var lastTime: Int64?

  private let segment: SegmentReader
  private let filter: any RecordFilter
  private let isDone = Mutex(false)
  private var end: () -> Void = {}

  /// Begins to read the second part of what is left of a segment.
  ///
  /// - Parameters:
  ///   - walked: the segment, which is not used.
  ///   - offset: where the walk is.
  /// - Returns: nil if the rest is short, or has no record in its second part with which decompression can begin.
  static func begin(
    behind offset: UInt64, of walked: SegmentReader, in directory: DatabaseDirectory,
    _ parallel: ParallelReading
  ) throws(StorageError) -> ReadAhead? {
    guard walked.byteCount >= offset, walked.byteCount - offset >= parallel.byteCountMin else {
      return nil
    }
    let segment = try SegmentReader(walked.name, in: directory)
    guard segment.header == walked.header,
      let first = try segment.restart(from: try segment.divide(behind: offset))
    else { return nil }
    let ahead = ReadAhead(first, segment, parallel.makeFilter())
    ahead.end = parallel.run { ahead.run() }
    return ahead
  }

  private init(_ first: RecordInfo, _ segment: SegmentReader, _ filter: any RecordFilter) {
    self.first = first
    self.segment = segment
    self.filter = filter
  }

  /// Waits until the part was read.
  func wait() {
    end()
    isDone.withLock { precondition($0, "the function that waits has waited") }
  }

  private func run() {
    // What is wrong behind the part's end, the walk finds and reports.
    try? read()
    isDone.withLock { $0 = true }
  }

  private func read() throws(StorageError) {
    let scan = SegmentScan(segment, from: first)
    var found: [(record: RecordInfo, payload: [UInt8])] = []
    var foundByteCount = 0
    var durable = LogSequenceNumber.zero
    var time: Int64?
    while foundByteCount <= Self.wantedByteLimit, let (record, payload) = try Self.next(scan) {
      if record.header.isRestart, let previous = scan.last {
        last = previous
        wanted += found
        found = []
        durableUpTo = durable
        lastTime = time
      }
      if record.kind == .writes {
        if filter.wants(record, payload) {
          found.append((record, Array(payload)))
          foundByteCount += payload.count
        } else {
          time = filter.lastTime
        }
      }
      durable = max(durable, record.durableUpTo)
      scan.take(record)
    }
  }

  /// The next record and its payload; nil if it is a seal, does not follow the one before, or is wrong.
  private static func next(
    _ scan: SegmentScan
  ) throws(StorageError) -> (RecordInfo, UnsafeRawBufferPointer)? {
    if let found = try scan.chainedRecord() { return found }
    guard case .record(let record, let payload) = try scan.record(), record.kind != .seal else {
      return nil
    }
    return (record, payload)
  }
}
