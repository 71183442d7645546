import CDendroLZ4

/// LZ4 blocks of declared, bounded size.
package enum Compression {
  /// How far back a block may refer.
  static let historyByteCount = 64 * 1024
  /// Raw bytes in one block: the engine's largest write, with room for its framing.
  static let rawByteLimit = 257 * 1024 * 1024

  /// Whether so many stored bytes can be a block of so many raw ones. LZ4's best ratio is 255, and `bound` its worst
  /// result: other sizes are refused before memory is allocated for either.
  package static func isPlausible(raw: UInt64, stored: UInt64) -> Bool {
    raw <= UInt64(rawByteLimit) && stored <= UInt64(bound(Int(raw)))
      && raw <= 255 &* stored &+ 64
  }

  /// The most bytes that a block of so many raw bytes can take.
  package static func bound(_ rawByteCount: Int) -> Int { rawByteCount + rawByteCount / 255 + 16 }

  /// Compresses without history. The target has room for `bound(bytes.count)`.
  package static func compress(
    _ bytes: UnsafeRawBufferPointer, into target: UnsafeMutableRawPointer
  ) -> Int {
    guard let source = bytes.baseAddress, bytes.count > 0 else { return 0 }
    return Int(
      LZ4_compress_default(
        source.assumingMemoryBound(to: CChar.self), target.assumingMemoryBound(to: CChar.self),
        Int32(bytes.count), Int32(clamping: bound(bytes.count))))
  }

  /// Decompresses a block whose history, if any, stands right before the target or elsewhere.
  ///
  /// - Returns: whether the block is well formed and gave exactly `rawByteCount` bytes. Compare their
  ///   checksum: a block can be decoded with a wrong history, and then gives wrong bytes.
  package static func decompress(
    _ stored: UnsafeRawBufferPointer, into target: UnsafeMutableRawPointer, rawByteCount: Int,
    history: UnsafeRawBufferPointer
  ) -> Bool {
    guard let source = stored.baseAddress, let size = Int32(exactly: stored.count),
      let rawSize = Int32(exactly: rawByteCount)
    else { return false }
    let count = LZ4_decompress_safe_usingDict(
      source.assumingMemoryBound(to: CChar.self), target.assumingMemoryBound(to: CChar.self),
      size, rawSize, history.baseAddress?.assumingMemoryBound(to: CChar.self),
      Int32(clamping: history.count))
    return count == rawSize
  }
}

/// Compresses one payload after the other, each against the raw bytes of those before it.
///
/// The payloads are copied one behind the other into an arena, so that their history is contiguous:
/// LZ4 then uses all of the last 64 KiB, not the last payload only. Behind so many raw bytes the history
/// restarts, which bounds what becomes unreadable behind a damaged record.
/// The arena is one allocation, made at the first use and touched only as far as it is filled.
struct HistoryCompressor: ~Copyable {
  static let arenaByteCount = 1024 * 1024
  /// Raw bytes in the history at which it restarts.
  static let historyByteCountMax = 256 * 1024

  private var stream: UnsafeMutablePointer<LZ4_stream_t>?
  private var arena = RawBuffer()
  private var filled = 0
  /// Whether the history restarts at the next payload.
  private(set) var needsRestart = true

  init() {}

  deinit { if let stream { LZ4_freeStream(stream) } }

  /// Restarts the history at the next payload.
  mutating func restart() { needsRestart = true }

  /// Compresses one payload into `target`, which has room for `bound(payload.count)` bytes.
  ///
  /// - Returns: the length of the block, 0 if the payload should be stored raw; and whether
  ///   the history starts with this payload. It enters the history in either case.
  mutating func compress(
    _ payload: UnsafeRawBufferPointer, into target: UnsafeMutableRawPointer
  ) -> (storedByteCount: Int, isRestart: Bool) {
    guard let source = payload.baseAddress, payload.count > 0 else { return (0, false) }
    if payload.count > Self.arenaByteCount {
      // Too large for the arena: a block of its own, and no history for the next payload.
      needsRestart = true
      let count = Compression.compress(payload, into: target)
      return (count < payload.count ? count : 0, true)
    }
    if filled >= Self.historyByteCountMax || payload.count > Self.arenaByteCount - filled {
      needsRestart = true
    }
    let isRestart = needsRestart
    if isRestart { reset() }
    let place = arena.base + filled
    place.copyMemory(from: source, byteCount: payload.count)
    filled += payload.count
    let count = Int(
      LZ4_compress_fast_continue(
        stream, place.assumingMemoryBound(to: CChar.self),
        target.assumingMemoryBound(to: CChar.self), Int32(payload.count),
        Int32(Compression.bound(payload.count)), 1))
    if count <= 0 {
      // LCOV_EXCL_START: LZ4 refuses no block that has as much room as it asks for
      // The stream would be undefined after it.
      needsRestart = true
      return (0, isRestart)
      // LCOV_EXCL_STOP
    }
    return (count < payload.count ? count : 0, isRestart)
  }

  private mutating func reset() {
    if let stream {
      LZ4_resetStream_fast(stream)
    } else {
      guard let new = LZ4_createStream() else { preconditionFailure("no memory for LZ4") }
      stream = new
      arena.reserve(Self.arenaByteCount)
    }
    filled = 0
    needsRestart = false
  }
}

/// Decompresses the blocks of a `HistoryCompressor` with an arena of any size.
struct HistoryDecompressor: ~Copyable {
  private static let arenaByteCount = 1024 * 1024

  private var arena = RawBuffer()
  /// Where the history, which is contiguous, ends.
  private var filled = 0

  init() {}

  /// Discards the history: at a restart point, and where a segment begins.
  mutating func restart() { filled = 0 }

  /// Adds a payload that was stored raw to the history.
  mutating func append(raw: UnsafeRawBufferPointer) {
    let kept = UnsafeRawBufferPointer(
      rebasing: raw.suffix(Compression.historyByteCount))
    guard let source = kept.baseAddress, kept.count > 0 else { return }
    if kept.count == Compression.historyByteCount { filled = 0 }
    reserve(kept.count)
    (arena.base + filled).copyMemory(from: source, byteCount: kept.count)
    filled += kept.count
  }

  /// Decodes a block of plausible declared size (see `Compression.isPlausible`).
  ///
  /// - Returns: the raw bytes, valid until the next call; nil if the block is not well formed.
  mutating func decompress(_ stored: UnsafeRawBufferPointer, rawByteCount: Int)
    -> UnsafeRawBufferPointer?
  {
    reserve(rawByteCount)
    let history = min(filled, Compression.historyByteCount)
    let place = arena.base + filled
    guard
      Compression.decompress(
        stored, into: place, rawByteCount: rawByteCount,
        history: UnsafeRawBufferPointer(start: place - history, count: history))
    else { return nil }
    filled += rawByteCount
    return UnsafeRawBufferPointer(start: place, count: rawByteCount)
  }

  /// Removes the block that was decoded last from the history.
  mutating func forget(_ rawByteCount: Int) { filled = max(0, filled - rawByteCount) }

  /// Keeps a block that cannot be decoded in the history: as much of it as can be, and zeros, so that what later blocks
  /// give depends on nothing but the file.
  mutating func keep(undecodable stored: UnsafeRawBufferPointer, rawByteCount: Int) {
    reserve(rawByteCount)
    let history = min(filled, Compression.historyByteCount)
    let place = arena.base + filled
    place.initializeMemory(as: UInt8.self, repeating: 0, count: rawByteCount)
    _ = Compression.decompress(
      stored, into: place, rawByteCount: rawByteCount,
      history: UnsafeRawBufferPointer(start: place - history, count: history))
    filled += rawByteCount
  }

  /// Makes room behind the history, moving its last 64 KiB to the front if there is none.
  private mutating func reserve(_ count: Int) {
    if filled + count <= arena.capacity { return }
    let history = min(filled, Compression.historyByteCount)
    let start = filled - history
    // The arena doubles up to its usual size, so that it stays small in a small database. An arena that has
    // grown for a single huge payload is not kept.
    let wanted = max(history + count, min(2 * arena.capacity, Self.arenaByteCount), 4096)
    if wanted <= arena.capacity && arena.capacity <= 4 * Self.arenaByteCount {
      arena.base.copyMemory(from: arena.base + start, byteCount: history)
    } else {
      var larger = RawBuffer()
      larger.reserve(wanted)
      if history > 0 { larger.base.copyMemory(from: arena.base + start, byteCount: history) }
      swap(&arena, &larger)
    }
    filled = history
  }
}
