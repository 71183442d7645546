/// How a log takes its space.
package struct LogOptions: Hashable, Sendable {
  /// Bytes on disk after which `LogWriter.wantsRoll` asks for a new segment; 64 MiB.
  package var segmentByteLimit: UInt64 = 64 * 1024 * 1024
  /// Bytes that the first preallocation of a segment takes; each later one takes twice as many. 0: none.
  package var preallocationMin: UInt64 = 64 * 1024
  /// Bytes that a preallocation takes at most; 16 MiB.
  package var preallocationMax: UInt64 = 16 * 1024 * 1024

  package init() {}
}
