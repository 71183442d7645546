/// Finds the chunks of a checkpoint by their own headers, at their places or displaced.
///
/// The checksum of a chunk's payload says that the bytes are right, that of its header which chunk it is.
struct ChunkScan: ~Copyable {
  struct Place {
    var offset: UInt64
    var byteCount: Int
    var isDisplaced: Bool
  }

  private static let windowByteCount = 512 * 1024
  private static let trialCountMax: UInt64 = 1 << 22

  private let file: any File
  private let path: String
  private let byteCount: UInt64
  private let salt: UInt64
  private(set) var places: [UInt32: Place] = [:]
  /// The number of chunks that the header of the index says; nil if there is no index.
  private(set) var indexChunkCount: Int?

  /// By how much chunks were displaced, as in `SegmentMap.Stretch`; the last one first.
  private var distances: [UInt64] = [0]
  private var trialCount: UInt64 = 0
  /// Bytes that may still be read for chunks that are none: bounds the work if the lengths are hostile.
  private var byteBudget: UInt64
  private var window = RawBuffer()
  private var chunk = RawBuffer()
  private var decoded = RawBuffer()

  init(_ file: any File, _ path: String, byteCount: UInt64, salt: UInt64) {
    self.file = file
    self.path = path
    self.byteCount = byteCount
    self.salt = salt
    byteBudget = 16 * byteCount
  }

  /// - Throws: `.io`.
  /// - Complexity: O(bytes of the file), and a bounded number of distances tried for displaced chunks.
  mutating func run() throws(StorageError) {
    window.reserve(Self.windowByteCount)
    var place = UInt64(CheckpointHeader.byteCount)
    while place < byteCount {
      let count = try file.readFully(
        into: UnsafeMutableRawBufferPointer(start: window.base, count: Self.windowByteCount),
        at: place, path: path)
      let bytes = UnsafeRawBufferPointer(start: window.base, count: count)
      let isLast = place + UInt64(count) >= byteCount
      let end = isLast ? count : count - ChunkHeader.byteCount
      guard end > 0 else { return }
      var start = 0
      var next = place + UInt64(end)
      while let found = firstIndex(of: ChunkHeader.firstByte, in: bytes, from: start, to: end) {
        start = found + 1
        let candidate = UnsafeRawBufferPointer(rebasing: bytes[found...])
        guard let header = ChunkHeader(unchecked: candidate),
          try take(header, candidate, at: place + UInt64(found))
        else { continue }
        next = place + UInt64(found + ChunkHeader.byteCount + header.storedByteCount)
        break
      }
      place = next
    }
  }

  /// Notes a chunk, if its bytes are right.
  private mutating func take(
    _ header: ChunkHeader, _ head: UnsafeRawBufferPointer, at offset: UInt64
  ) throws(StorageError) -> Bool {
    let length = ChunkHeader.byteCount + header.storedByteCount
    guard UInt64(length) <= byteCount - offset, UInt64(length) <= byteBudget else { return false }
    byteBudget -= UInt64(length)
    chunk.reserve(length)
    let count = try file.readFully(
      into: UnsafeMutableRawBufferPointer(start: chunk.base, count: length), at: offset, path: path)
    let bytes = UnsafeRawBufferPointer(start: chunk.base, count: count)
    guard count == length, header.payload(of: bytes, salt: salt, into: &decoded) != nil,
      let distance = distance(UnsafeRawBufferPointer(rebasing: bytes.prefix(32)), at: offset)
    else { return false }
    byteBudget += UInt64(length)
    distances.removeAll { $0 == distance }
    distances.insert(distance, at: 0)
    if distances.count > 16 { distances.removeLast() }
    if header.isIndex {
      indexChunkCount = Int(header.number)
    } else if places[header.number] == nil {
      places[header.number] = Place(
        offset: offset, byteCount: length, isDisplaced: distance != 0)
    }
    return true
  }

  /// By how much a chunk was displaced whose payload is right; nil if its header is damaged.
  private mutating func distance(_ header: UnsafeRawBufferPointer, at offset: UInt64) -> UInt64? {
    let fields = UnsafeRawBufferPointer(rebasing: header[..<28])
    let checksum = UInt32(
      littleEndian: header.loadUnaligned(fromByteOffset: 28, as: UInt32.self))
    let seed = salt &+ offset
    for distance in distances where Checksum.short(fields, seed: seed &+ distance) == checksum {
      return distance
    }
    let limit = max(byteCount, 1 << 20)
    var distance: UInt64 = 1
    while distance <= limit, trialCount < Self.trialCountMax {
      if Checksum.short(fields, seed: seed &+ distance) == checksum { return distance }
      if Checksum.short(fields, seed: seed &- distance) == checksum { return 0 &- distance }
      distance += 1
      trialCount += 2
    }
    return nil
  }
}

extension ChunkHeader {
  /// The first byte of both magics.
  static let firstByte: UInt8 = 0xF5

  /// The fields at the start of `bytes`, whose checksum was not compared; nil if they cannot be those of a chunk or an
  /// index.
  init?(unchecked bytes: UnsafeRawBufferPointer) {
    guard bytes.count >= Self.byteCount else { return nil }
    func word(_ place: Int) -> UInt32 {
      UInt32(littleEndian: bytes.loadUnaligned(fromByteOffset: place, as: UInt32.self))
    }
    guard word(0) == Self.magic || word(0) == Self.indexMagic, word(4) <= 1 else { return nil }
    self.init(
      isIndex: word(0) == Self.indexMagic, isCompressed: word(4) == 1,
      storedByteCount: Int(word(8)), rawByteCount: Int(word(12)), number: word(16),
      payloadChecksum: UInt64(
        littleEndian: bytes.loadUnaligned(fromByteOffset: 20, as: UInt64.self)))
    guard hasPlausibleLengths else { return nil }
  }

  /// Whether the lengths are within the limits.
  var hasPlausibleLengths: Bool {
    let isPlausible =
      isCompressed
      ? Compression.isPlausible(raw: UInt64(rawByteCount), stored: UInt64(storedByteCount))
      : rawByteCount == storedByteCount
    return isPlausible && rawByteCount <= (isIndex ? Compression.rawByteLimit : Self.rawByteLimit)
  }

  /// The raw bytes of a chunk, decompressed and checked; nil if they are wrong.
  ///
  /// - Parameters:
  ///   - bytes: the header, and what is stored behind it.
  ///   - decoded: the result may lie in it, or in `bytes`.
  func payload(
    of bytes: UnsafeRawBufferPointer, salt: UInt64, into decoded: inout RawBuffer
  ) -> UnsafeRawBufferPointer? {
    guard bytes.count >= Self.byteCount + storedByteCount else { return nil }
    let stored = UnsafeRawBufferPointer(
      rebasing: bytes[Self.byteCount..<Self.byteCount + storedByteCount])
    var raw = stored
    if isCompressed {
      decoded.reserve(rawByteCount)
      guard
        Compression.decompress(
          stored, into: decoded.base, rawByteCount: rawByteCount,
          history: UnsafeRawBufferPointer(start: nil, count: 0))
      else { return nil }
      raw = UnsafeRawBufferPointer(start: decoded.base, count: rawByteCount)
    }
    return Checksum.xxh3(raw, seed: salt) == payloadChecksum ? raw : nil
  }
}
