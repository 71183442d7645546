// Constants and fields of a checkpoint file, written and read in one place; see <doc:CheckpointFormat>.

/// The first 64 bytes of a checkpoint.
package struct CheckpointHeader: Hashable, Sendable {
  static let byteCount = 64
  static let logChecksumOffset: UInt64 = 56
  static let magic: UInt64 = 0x0A74_7043_646E_4489  // 89 "DndCpt" 0A in the order of the file

  package private(set) var format = FileFormat()
  package var databaseID: DatabaseID
  package var salt: UInt64
  /// The tree holds exactly the writes up to here.
  package var lsn: LogSequenceNumber
  /// Of that write: milliseconds since 1970.
  package var time: Int64
  /// Binds the checkpoint to its log: the log's checksum at that write, see `LogReader.checksum(_:at:)`.
  package var logChecksum: UInt32

  func encode(into bytes: inout ByteWriter) {
    let start = bytes.count
    bytes.fileHead(format, magic: Self.magic, databaseID, salt: salt, lsn, time: time)
    bytes.uint32(logChecksum)
    bytes.uint32(
      Checksum.short(UnsafeRawBufferPointer(rebasing: bytes.bytes[start...]), seed: 0))
  }

  init(
    format: FileFormat = FileFormat(), databaseID: DatabaseID, salt: UInt64,
    lsn: LogSequenceNumber, time: Int64, logChecksum: UInt32
  ) {
    self.format = format
    self.databaseID = databaseID
    self.salt = salt
    self.lsn = lsn
    self.time = time
    self.logChecksum = logChecksum
  }

  /// The bytes that are known without the header: the magic and the number of the write, which the file's name has too.
  static func knownPlaces(lsn: LogSequenceNumber) -> [(offset: Int, bytes: [UInt8])] {
    func bytes(_ value: UInt64) -> [UInt8] { withUnsafeBytes(of: value.littleEndian) { Array($0) } }
    return [(0, bytes(magic)), (40, bytes(lsn.rawValue))]
  }

  /// - Parameter bytes: all of a header.
  static func isChecksumRight(_ bytes: UnsafeRawBufferPointer) -> Bool {
    let end = byteCount - 4
    return UInt32(littleEndian: bytes.loadUnaligned(fromByteOffset: end, as: UInt32.self))
      == Checksum.short(UnsafeRawBufferPointer(rebasing: bytes[..<end]), seed: 0)
  }

  init(decoding bytes: UnsafeRawBufferPointer, path: String) throws(StorageError) {
    var reader: FieldReader
    (reader, format) = try FileFormat.check(
      bytes, magic: Self.magic, byteCount: Self.byteCount, path: path)
    databaseID = DatabaseID(high: try reader.uint64(), low: try reader.uint64())
    salt = try reader.uint64()
    lsn = LogSequenceNumber(try reader.uint64())
    time = Int64(bitPattern: try reader.uint64())
    logChecksum = try reader.uint32()
  }
}

/// The last 64 bytes of a checkpoint.
package struct CheckpointFooter: Hashable, Sendable {
  static let byteCount = 64
  static let magic: UInt64 = 0x0A64_6E45_646E_4489  // 89 "DndEnd" 0A in the order of the file

  var indexOffset: UInt64
  var indexByteCount: UInt32
  package var chunkCount: UInt32
  package var leafCount: UInt64
  /// Raw bytes of all chunks.
  package var rawByteCount: UInt64
  package var contentHash: UInt64
  package var lsn: LogSequenceNumber

  func encode(into bytes: inout ByteWriter, salt: UInt64) {
    let start = bytes.count
    bytes.uint64(Self.magic)
    bytes.uint64(indexOffset)
    bytes.uint32(indexByteCount)
    bytes.uint32(chunkCount)
    bytes.uint64(leafCount)
    bytes.uint64(rawByteCount)
    bytes.uint64(contentHash)
    bytes.uint64(lsn.rawValue)
    bytes.uint64(
      Checksum.xxh3(UnsafeRawBufferPointer(rebasing: bytes.bytes[start...]), seed: salt))
  }

  init(
    indexOffset: UInt64, indexByteCount: UInt32, chunkCount: UInt32, leafCount: UInt64,
    rawByteCount: UInt64, contentHash: UInt64, lsn: LogSequenceNumber
  ) {
    self.indexOffset = indexOffset
    self.indexByteCount = indexByteCount
    self.chunkCount = chunkCount
    self.leafCount = leafCount
    self.rawByteCount = rawByteCount
    self.contentHash = contentHash
    self.lsn = lsn
  }

  /// - Parameter offset: of `bytes` in the file.
  init(
    decoding bytes: UnsafeRawBufferPointer, salt: UInt64, offset: UInt64, path: String
  ) throws(StorageError) {
    var reader = FieldReader(bytes, of: "a footer", path: path, offset: offset)
    let magic = try reader.uint64()
    guard magic == Self.magic else {
      throw .corrupt(
        path: path, offset: offset,
        expected: "footer magic \(hexadecimal(Self.magic.byteSwapped))",
        found: hexadecimal(magic.byteSwapped))
    }
    indexOffset = try reader.uint64()
    indexByteCount = try reader.uint32()
    chunkCount = try reader.uint32()
    leafCount = try reader.uint64()
    rawByteCount = try reader.uint64()
    contentHash = try reader.uint64()
    lsn = LogSequenceNumber(try reader.uint64())
    let checksum = try reader.uint64()
    let expected = Checksum.xxh3(UnsafeRawBufferPointer(rebasing: bytes[..<56]), seed: salt)
    guard checksum == expected else {
      throw .corrupt(
        path: path, offset: offset + 56, expected: "footer checksum \(hexadecimal(expected))",
        found: hexadecimal(checksum))
    }
  }
}

/// The 32 bytes before every chunk and before the index.
struct ChunkHeader: Hashable {
  static let byteCount = 32
  static let magic: UInt32 = 0x6B68_43F5  // F5 "Chk" in the order of the file
  static let indexMagic: UInt32 = 0x7864_49F5  // F5 "Idx"
  static let rawByteLimit = 64 * 1024 * 1024
  /// Of an entry of the index: two varints.
  static let entryByteCountMax = 20

  /// The most bytes that a chunk or an index of so many raw ones takes in the file, with its header.
  static func byteCountMax(rawByteCount: Int) -> Int {
    byteCount + Compression.bound(min(rawByteCount, Compression.rawByteLimit))
  }

  var isIndex: Bool
  var isCompressed: Bool
  var storedByteCount: Int
  var rawByteCount: Int
  /// 0, 1, 2, …; of the index, the number of chunks.
  var number: UInt32
  /// Of the raw bytes.
  var payloadChecksum: UInt64

  func encode(into bytes: inout ByteWriter, salt: UInt64, offset: UInt64) {
    let start = bytes.count
    bytes.uint32(isIndex ? Self.indexMagic : Self.magic)
    bytes.uint32(isCompressed ? 1 : 0)
    bytes.uint32(UInt32(storedByteCount))
    bytes.uint32(UInt32(rawByteCount))
    bytes.uint32(number)
    bytes.uint64(payloadChecksum)
    bytes.uint32(
      Checksum.short(
        UnsafeRawBufferPointer(rebasing: bytes.bytes[start...]), seed: salt &+ offset))
  }

  init(
    isIndex: Bool, isCompressed: Bool, storedByteCount: Int, rawByteCount: Int, number: UInt32,
    payloadChecksum: UInt64
  ) {
    self.isIndex = isIndex
    self.isCompressed = isCompressed
    self.storedByteCount = storedByteCount
    self.rawByteCount = rawByteCount
    self.number = number
    self.payloadChecksum = payloadChecksum
  }

  init(
    decoding bytes: UnsafeRawBufferPointer, isIndex: Bool, salt: UInt64, offset: UInt64,
    path: String
  ) throws(StorageError) {
    self.isIndex = isIndex
    guard bytes.count >= Self.byteCount else {
      throw .corrupt(
        path: path, offset: offset, expected: "a chunk header of \(Self.byteCount) bytes",
        found: "the end of the file")
    }
    let expected = Checksum.short(
      UnsafeRawBufferPointer(rebasing: bytes[..<28]), seed: salt &+ offset)
    func word(_ place: Int) -> UInt32 {
      UInt32(littleEndian: bytes.loadUnaligned(fromByteOffset: place, as: UInt32.self))
    }
    guard word(28) == expected else {
      throw .corrupt(
        path: path, offset: offset + 28,
        expected: "chunk header checksum \(hexadecimal(expected))", found: hexadecimal(word(28)))
    }
    let magic = isIndex ? Self.indexMagic : Self.magic
    guard word(0) == magic && word(4) <= 1 else {
      throw .corrupt(
        path: path, offset: offset, expected: isIndex ? "the index" : "a chunk",
        found: hexadecimal(bytes.prefix(8)))
    }
    isCompressed = word(4) == 1
    storedByteCount = Int(word(8))
    rawByteCount = Int(word(12))
    number = word(16)
    payloadChecksum = UInt64(
      littleEndian: bytes.loadUnaligned(fromByteOffset: 20, as: UInt64.self))
    guard hasPlausibleLengths
    else {
      throw .corrupt(
        path: path, offset: offset + 8, expected: "lengths within the limits",
        found: "\(storedByteCount) stored of \(rawByteCount) raw")
    }
  }
}
