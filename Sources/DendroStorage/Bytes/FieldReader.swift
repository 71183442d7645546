/// Reads the fixed fields of a file's header or footer; too few bytes are reported as damage.
struct FieldReader {
  private var reader: ByteReader
  private let what: String
  private let path: String
  private let offset: UInt64

  /// - Parameters:
  ///   - bytes: must outlive the reader.
  ///   - what: what they are, as in "a footer".
  ///   - path: of the file.
  ///   - offset: of the bytes in it.
  init(_ bytes: UnsafeRawBufferPointer, of what: String, path: String, offset: UInt64 = 0) {
    reader = ByteReader(bytes)
    self.what = what
    self.path = path
    self.offset = offset
  }

  mutating func uint32() throws(StorageError) -> UInt32 {
    try field { (reader) throws(ByteError) in try reader.uint32() }
  }

  mutating func uint64() throws(StorageError) -> UInt64 {
    try field { (reader) throws(ByteError) in try reader.uint64() }
  }

  private mutating func field<I>(
    _ read: (inout ByteReader) throws(ByteError) -> I
  ) throws(StorageError) -> I {
    do {
      return try read(&reader)
    } catch {
      throw .corrupt(
        path: path, offset: offset + UInt64(error.offset), expected: what,
        found: "the end of the file")
    }
  }
}
