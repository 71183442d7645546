import DendroTesting
import Testing

@testable import DendroStorage

/// One record as a test sees it.
struct Entry: Hashable {
  var firstLSN: UInt64
  var count: Int
  var time: Int64
  var payload: [UInt8]
}

/// What reading a log gives.
struct ReadLog {
  var entries: [Entry]
  var end: LogEnd
  /// The last write that was visited, or the checkpoint.
  var lastLSN: UInt64 { end.lastLSN.rawValue }
}

let root = "/db"

func bytes(_ text: String) -> [UInt8] { Array(text.utf8) }

func open(_ disk: SimulatedDisk, create: Bool = true) throws(StorageError) -> DatabaseDirectory {
  try DatabaseDirectory.open(
    root, environment: disk.environment, mode: .readWrite(create: create))
}

func openReadOnly(_ disk: SimulatedDisk) throws(StorageError) -> DatabaseDirectory {
  try DatabaseDirectory.open(root, environment: disk.environment, mode: .readOnly)
}

/// Small segments of no preallocated space, unless a test is about them.
var plainOptions: LogOptions {
  var options = LogOptions()
  options.preallocationMin = 0
  return options
}

func newLog(_ directory: DatabaseDirectory, options: LogOptions = plainOptions)
  throws(StorageError) -> LogWriter
{
  try LogWriter.create(
    directory, databaseID: DatabaseID(high: 1, low: 2),
    time: directory.environment.clock.now(), options: options)
}

extension LogWriter {
  /// Stages one record of `count` writes.
  func stage(_ payload: [UInt8], count: Int = 1) throws(StorageError) {
    let first = nextLSN
    let error: StorageError? = payload.withUnsafeBytes { bytes in
      do throws(StorageError) {
        try stage(
          bytes, firstLSN: first, count: count, baseTime: 1_704_067_200_000 + Int64(first.rawValue))
        return nil
      } catch {
        return error
      }
    }
    if let error { throw error }
  }

  /// One record, written, synchronized if asked for.
  func append(_ payload: [UInt8], count: Int = 1, durably: Bool = true) throws(StorageError) {
    try stage(payload, count: count)
    try write()
    if durably { try synchronize() }
  }
}

/// Reads a log whole; nil if there is none.
func read(
  _ directory: DatabaseDirectory, after checkpoint: UInt64 = 0, provenDurable: UInt64 = 0
) throws(StorageError) -> ReadLog? {
  var entries: [Entry] = []
  let end = try LogReader.read(
    directory, after: LogSequenceNumber(checkpoint),
    provenDurable: LogSequenceNumber(provenDurable)
  ) { (record, payload) throws(StorageError) in
    entries.append(
      Entry(
        firstLSN: record.firstLSN.rawValue, count: record.count, time: record.baseTime,
        payload: Array(payload)))
  }
  return end.map { ReadLog(entries: entries, end: $0) }
}

func read(_ disk: SimulatedDisk) throws(StorageError) -> ReadLog? {
  let directory = try open(disk, create: true)
  defer { directory.close() }
  return try read(directory)
}

/// Opens, repairs and continues the log.
func resume(_ disk: SimulatedDisk, options: LogOptions = plainOptions) throws(StorageError) -> (
  DatabaseDirectory, LogWriter, ReadLog
) {
  let directory = try open(disk)
  guard let log = try read(directory) else {
    throw .notFound(path: root)
  }
  let end = try repairTail(directory, log.end)
  return (
    directory, try LogWriter.resume(directory, end: end, options: options),
    ReadLog(entries: log.entries, end: end)
  )
}

func segmentPath(_ firstLSN: UInt64) -> String {
  root + "/" + SegmentName(firstLSN: LogSequenceNumber(firstLSN)).fileName
}

/// Text that compresses a little, different for each number. That of an odd number begins like a set, so that a
/// short record may store it.
func payload(_ number: Int, _ count: Int = 40) -> [UInt8] {
  let text = bytes("posts/-N\(number)/title \"number \(number) of a few\" ")
  var payload: [UInt8] = []
  while payload.count < count { payload += text.prefix(count - payload.count) }
  if number % 2 == 1, count > 3 { payload.replaceSubrange(..<3, with: [0, 1, 0]) }
  return payload
}

/// A record as it would stand at the log's end, with right checksums whatever it claims.
func forgedRecord(
  behind end: LogEnd, firstLSN: UInt64, payload: [UInt8], rawByteCount: Int? = nil,
  isShort: Bool = false
) -> [UInt8] {
  let header = RecordHeader(
    kind: .writes, isCompressed: rawByteCount != nil && !isShort, isRestart: !isShort,
    storedByteCount: payload.count, rawByteCount: rawByteCount ?? payload.count,
    firstLSN: LogSequenceNumber(firstLSN), count: 1, baseTime: 0,
    durableUpTo: LogSequenceNumber(firstLSN - 1), previousChecksum: end.checksum,
    payloadChecksum: payload.withUnsafeBytes { Checksum.xxh3($0, seed: end.segmentHeader.salt) },
    isShort: isShort)
  var record = [UInt8](repeating: 0, count: RecordHeader.byteCountMax)
  let byteCount = record.withUnsafeMutableBytes {
    header.encode(at: $0.baseAddress!, offset: end.offset, segment: end.segmentHeader).byteCount
  }
  return record[..<byteCount] + payload
}
