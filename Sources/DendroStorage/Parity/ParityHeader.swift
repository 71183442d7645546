/// The first bytes of a parity file; see <doc:ParityFormat>.
struct ParityHeader: Hashable, Sendable {
  static let byteCount = 120
  static let magic: UInt64 = 0x0A72_6150_646E_4489  // 89 "DndPar" 0A in the order of the file
  /// How much of the file the header repeats: its own header, which tells it from all others.
  static let headByteCount = 64
  private static let headOffset = 40

  private var format = FileFormat()
  var layout: ParityLayout
  /// The first bytes of the file, zeros behind its end.
  var head: [UInt8]
  /// Of the table: the checksums of all blocks.
  var tableChecksum: UInt64

  init(layout: ParityLayout, head: [UInt8], tableChecksum: UInt64) {
    self.layout = layout
    self.head = head
    self.tableChecksum = tableChecksum
  }

  func encode(into bytes: inout ByteWriter) {
    let start = bytes.count
    bytes.uint64(Self.magic)
    bytes.uint32(format.version)
    bytes.uint32(format.features)
    bytes.uint64(layout.coveredByteCount)
    bytes.uint64(layout.blockCount)
    bytes.uint64(layout.parityBlockCount)
    head.withUnsafeBytes { bytes.bytes($0) }
    bytes.uint64(tableChecksum)
    bytes.uint32(UInt32(ParityLayout.blockByteCount))
    bytes.uint32(
      Checksum.short(UnsafeRawBufferPointer(rebasing: bytes.bytes[start...]), seed: 0))
  }

  init(decoding bytes: UnsafeRawBufferPointer, path: String) throws(StorageError) {
    var reader: FieldReader
    (reader, format) = try FileFormat.check(
      bytes, magic: Self.magic, byteCount: Self.byteCount, path: path)
    layout = ParityLayout(coveredByteCount: try reader.uint64())
    let counts = (try reader.uint64(), try reader.uint64())
    guard counts == (layout.blockCount, layout.parityBlockCount) else {
      throw .corrupt(
        path: path, offset: 24,
        expected: "\(layout.blockCount) blocks and \(layout.parityBlockCount) of parity",
        found: "\(counts.0) and \(counts.1)")
    }
    head = Array(bytes[Self.headOffset..<Self.headOffset + Self.headByteCount])
    for _ in 0..<(Self.headByteCount / 8) { _ = try reader.uint64() }
    tableChecksum = try reader.uint64()
    let blockByteCount = try reader.uint32()
    guard blockByteCount == UInt32(ParityLayout.blockByteCount) else {
      throw .corrupt(
        path: path, offset: 112, expected: "blocks of \(ParityLayout.blockByteCount) bytes",
        found: "\(blockByteCount)")
    }
  }

  /// The first bytes of a file, as a header repeats them.
  static func head(of file: any File, path: String) throws(StorageError) -> [UInt8] {
    var buffer = RawBuffer()
    buffer.reserve(headByteCount)
    let count = try file.readFully(
      into: UnsafeMutableRawBufferPointer(start: buffer.base, count: headByteCount), at: 0,
      path: path)
    let bytes = Array(UnsafeRawBufferPointer(start: buffer.base, count: count))
    return bytes + [UInt8](repeating: 0, count: headByteCount - count)
  }
}
