/// The bytes of a checkpoint's header, footer and chunk headers, field by field; see <doc:CheckpointFormat>. For
/// tools.
package struct AnnotatedCheckpoint: Sendable {
  package typealias Field = AnnotatedRecord.Field

  /// A chunk, as the index has it.
  package struct Chunk: Sendable {
    package var offset: UInt64
    package var byteCount: Int
    package var rawByteCount: Int
  }

  package let path: String
  package private(set) var fields: [Field] = []
  /// Why the file cannot be read; nil if header, footer and index are good.
  package private(set) var problem: String?
  package private(set) var chunks: [Chunk] = []
  package private(set) var formatVersion: UInt32?
  /// Whether there are chunks of the second root: then the last one says which chunks are those.
  package var hasSecondRoot: Bool { reader?.hasSecondRoot ?? false }
  private let reader: CheckpointReader?

  /// - Throws: `.io`.
  package init(_ directory: DatabaseDirectory, lsn: LogSequenceNumber) throws(StorageError) {
    path = directory.path(ofCheckpoint: lsn)
    let file = try directory.fileSystem.open(at: path, .read)
    let size = try file.size(path: path)
    do throws(StorageError) {
      reader = try CheckpointReader.open(directory, lsn: lsn)
    } catch {
      if case .io = error { throw error }
      reader = nil
      problem = error.description
    }
    formatVersion = reader?.header.format.version
    chunks = reader?.outline ?? []
    let header = try Self.bytes(file, path, at: 0, count: CheckpointHeader.byteCount)
    add(Self.headerFields, header, at: 0)
    guard size >= UInt64(CheckpointHeader.byteCount + CheckpointFooter.byteCount) else { return }
    if let reader {
      let index = reader.footer.indexOffset
      add(
        Self.chunkFields("index"),
        try Self.bytes(file, path, at: index, count: ChunkHeader.byteCount), at: index)
    }
    let offset = size - UInt64(CheckpointFooter.byteCount)
    add(
      Self.footerFields,
      try Self.bytes(file, path, at: offset, count: CheckpointFooter.byteCount), at: offset)
  }

  /// The header of a chunk, and its raw bytes if they can be read; nil for both if there is no such chunk.
  ///
  /// - Throws: `.io`.
  package func chunk<R>(
    _ number: Int, in directory: DatabaseDirectory, _ body: (UnsafeRawBufferPointer) -> R
  ) throws(StorageError) -> (fields: [Field], problem: String?, result: R?)? {
    guard let reader, chunks.indices.contains(number) else { return nil }
    let file = try directory.fileSystem.open(at: path, .read)
    let offset = chunks[number].offset
    var annotated = self
    annotated.fields = []
    annotated.add(
      Self.chunkFields("chunk"),
      try Self.bytes(file, path, at: offset, count: ChunkHeader.byteCount), at: offset)
    do throws(StorageError) {
      let result = try reader.readChunk(number) { (bytes) throws(StorageError) in body(bytes) }
      return (annotated.fields, nil, result)
    } catch {
      if case .io = error { throw error }
      return (annotated.fields, error.description, nil)
    }
  }

  // MARK: Fields

  private typealias Layout = [(count: Int, name: String, describe: (ArraySlice<UInt8>) -> String)]

  private mutating func add(_ layout: Layout, _ bytes: [UInt8], at start: UInt64) {
    var offset = 0
    for (count, name, describe) in layout where offset + count <= bytes.count {
      let field = bytes[offset..<offset + count]
      fields.append(
        Field(
          offset: start + UInt64(offset), bytes: Array(field), name: name, value: describe(field)))
      offset += count
    }
  }

  private static func integer(_ bytes: ArraySlice<UInt8>) -> UInt64 {
    bytes.reversed().reduce(0) { $0 << 8 | UInt64($1) }
  }

  private static func decimal(_ bytes: ArraySlice<UInt8>) -> String { "\(integer(bytes))" }

  private static func hex(_ bytes: ArraySlice<UInt8>) -> String {
    bytes.count == 4
      ? hexadecimal(UInt32(truncatingIfNeeded: integer(bytes))) : hexadecimal(integer(bytes))
  }

  private static func text(_ bytes: ArraySlice<UInt8>) -> String {
    let letters = bytes.filter { (0x20..<0x7F).contains($0) }
    return "\"\(String(decoding: letters, as: UTF8.self))\""
  }

  private static func identifier(_ bytes: ArraySlice<UInt8>) -> String {
    let low = bytes.dropFirst(8)
    return "\(DatabaseID(high: integer(bytes.prefix(8)), low: integer(low)))"
  }

  private static var headerFields: Layout {
    [
      (8, "magic", text), (4, "format version", decimal), (4, "features", hex),
      (16, "database id", identifier), (8, "salt", hex), (8, "LSN", decimal),
      (8, "time", { "\(Int64(bitPattern: integer($0)))" }), (4, "log checksum", hex),
      (4, "header checksum", hex),
    ]
  }

  private static var footerFields: Layout {
    [
      (8, "footer magic", text), (8, "offset of the index", decimal),
      (4, "bytes of the index", decimal), (4, "chunks", decimal), (8, "leaves", decimal),
      (8, "raw bytes", decimal), (8, "content hash", hex), (8, "LSN", decimal),
      (8, "footer checksum", hex),
    ]
  }

  private static func chunkFields(_ name: String) -> Layout {
    [
      (4, "\(name) magic", text), (4, "compressed", { integer($0) == 1 ? "yes" : "no" }),
      (4, "stored length", decimal), (4, "raw length", decimal),
      (4, name == "index" ? "chunks" : "number", decimal), (8, "payload checksum", hex),
      (4, "header checksum", hex),
    ]
  }

  private static func bytes(
    _ file: any File, _ path: String, at offset: UInt64, count: Int
  ) throws(StorageError) -> [UInt8] {
    var buffer = RawBuffer()
    buffer.reserve(count)
    let found = try file.readFully(
      into: UnsafeMutableRawBufferPointer(start: buffer.base, count: count), at: offset, path: path)
    return Array(UnsafeRawBufferPointer(start: buffer.base, count: found))
  }
}
