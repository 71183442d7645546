extension SegmentHeader {
  /// The header of a segment, of which nothing else is read.
  ///
  /// - Throws: `.corrupt` if it cannot be read; `.unsupportedVersion`; `.io`.
  package static func read(
    _ name: SegmentName, in directory: DatabaseDirectory
  ) throws(StorageError) -> SegmentHeader {
    let path = directory.path(of: name)
    return try SegmentHeader(decoding: bytes(at: path, in: directory), path: path)
  }

  init(decoding bytes: [UInt8], path: String) throws(StorageError) {
    let result = bytes.withUnsafeBytes { bytes in
      Result { () throws(StorageError) in try SegmentHeader(decoding: bytes, path: path) }
    }
    self = try result.get()
  }

  /// The first bytes of a file, as many as a segment's header has, or fewer if it ends before.
  static func bytes(
    at path: String, in directory: DatabaseDirectory
  ) throws(StorageError) -> [UInt8] {
    try bytes(of: directory.fileSystem.open(at: path, .read), path: path)
  }

  static func bytes(of file: any File, path: String) throws(StorageError) -> [UInt8] {
    var bytes = RawBuffer()
    bytes.reserve(byteCount)
    let count = try file.readFully(
      into: UnsafeMutableRawBufferPointer(start: bytes.base, count: byteCount), at: 0, path: path)
    return Array(UnsafeRawBufferPointer(start: bytes.base, count: count))
  }
}
