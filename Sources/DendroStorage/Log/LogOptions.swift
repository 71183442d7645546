/// The sizes of a log's segments and preallocations.
package struct LogOptions: Hashable, Sendable {
  /// Bytes on disk after which `LogWriter.wantsRoll` asks for a new segment; 64 MiB.
  package var segmentByteLimit: UInt64 = 64 * 1024 * 1024
  /// Bytes of the first preallocation of a segment; each later one is twice as large. 0: none.
  package var preallocationMin: UInt64 = 64 * 1024
  /// Most bytes of one preallocation; 16 MiB.
  package var preallocationMax: UInt64 = 16 * 1024 * 1024

  package init() {}
}
