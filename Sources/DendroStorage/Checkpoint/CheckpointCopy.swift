/// Reads the file of a checkpoint as it is, one part after the other, for a copy elsewhere. It has one owner; not for two
/// threads at once.
package final class CheckpointFileReader {
  private let file: any File
  private let path: String
  private let partByteCount: Int
  private var offset: UInt64 = 0
  /// The size of the file.
  package let byteCount: UInt64

  /// - Throws: `.io`.
  package init(
    _ directory: DatabaseDirectory, lsn: LogSequenceNumber, partByteCount: Int
  ) throws(StorageError) {
    path = directory.path(ofCheckpoint: lsn)
    self.partByteCount = partByteCount
    file = try directory.fileSystem.open(at: path, .read)
    byteCount = try file.size(path: path)
  }

  /// How many parts the file has.
  package var partCount: Int {
    Int((byteCount + UInt64(partByteCount) - 1) / UInt64(partByteCount))
  }

  /// - Returns: the next part; nil behind the last one.
  package func next() throws(StorageError) -> [UInt8]? {
    guard offset < byteCount else { return nil }
    var part = [UInt8](
      repeating: 0, count: Int(min(UInt64(partByteCount), byteCount - offset)))
    let result = part.withUnsafeMutableBytes { bytes in
      Result { () throws(StorageError) in
        try file.readFully(into: bytes, at: offset, path: path)
      }
    }
    guard try result.get() == part.count else {
      throw .corrupt(
        path: path, offset: offset, expected: "\(byteCount) bytes", found: "the end of the file")
    }
    offset += UInt64(part.count)
    return part
  }
}

/// Writes the file of a checkpoint that was copied elsewhere. The file appears complete or not at all. It has one owner; not
/// for two threads at once.
package final class CheckpointFileWriter {
  private let target: NewFile
  /// The bytes so far.
  package private(set) var byteCount: UInt64 = 0

  package init(
    _ directory: DatabaseDirectory, lsn: LogSequenceNumber
  ) throws(StorageError) {
    try directory.checkWritable()
    target = try NewFile(directory.path(ofCheckpoint: lsn), in: directory)
  }

  package func append(_ part: [UInt8]) throws(StorageError) {
    let result = part.withUnsafeBytes { bytes in
      Result { () throws(StorageError) in
        try target.file.writeAll(bytes, at: byteCount, path: target.temporaryPath)
      }
    }
    try result.get()
    byteCount += UInt64(part.count)
  }

  /// Makes the file exist: durable under its name when it returns. What is in it was not checked.
  package func finish() throws(StorageError) { try target.publish() }
}
