/// The format that a segment or a checkpoint says it has, in its first 16 bytes.
package struct FileFormat: Hashable, Sendable {
  /// The highest version that is read, and the one that is written.
  package static let newestVersion: UInt32 = 1

  package var version = newestVersion
  /// Bits for features without which a file cannot be read.
  package var incompatible: UInt8 = 0
  /// The bit for writes to the second root, and for a checkpoint that has one.
  static let secondRoot: UInt8 = 1
  /// The incompatible features that this release reads and writes.
  static let knownIncompatible = secondRoot
  /// Whether writes to the second root may be in the file, or that root itself.
  package var hasSecondRoot: Bool {
    get { incompatible & Self.secondRoot != 0 }
    set {
      incompatible = newValue ? incompatible | Self.secondRoot : incompatible & ~Self.secondRoot
    }
  }
  /// Bits for features without which a file can be read, and the database not written to.
  package var readOnlyCompatible: UInt8 = 0
  /// Bits for features that readers and writers may ignore.
  package var compatible: UInt16 = 0

  package init(version: UInt32 = newestVersion) { self.version = version }

  /// Checks the beginning of a segment or a checkpoint: magic, version, features, and the checksum in the last
  /// four bytes of the header.
  ///
  /// The checksum is compared before the version, so that a damaged version is not taken for a future format:
  /// in all versions magic, version, features and checksum stay where they are.
  ///
  /// - Returns: a reader of the fields behind the features.
  /// - Throws: `.corrupt`; `.unsupportedVersion` and `.unsupportedFeatures` for what a newer release wrote.
  static func check(
    _ bytes: UnsafeRawBufferPointer, magic: UInt64, byteCount: Int, path: String
  ) throws(StorageError) -> (FieldReader, FileFormat) {
    var reader = FieldReader(bytes, of: "a file header", path: path)
    guard let found = try? reader.uint64(), found == magic else {
      throw .corrupt(
        path: path, offset: 0, expected: "magic \(hexadecimal(magic.byteSwapped))",
        found: hexadecimal(bytes.prefix(8)))
    }
    guard bytes.count >= byteCount, let version = try? reader.uint32(),
      let features = try? reader.uint32()
    else {
      throw .corrupt(
        path: path, offset: UInt64(bytes.count), expected: "a header of \(byteCount) bytes",
        found: "the end of the file")
    }
    let end = byteCount - 4
    let expected = Checksum.short(UnsafeRawBufferPointer(rebasing: bytes[..<end]), seed: 0)
    let checksum = UInt32(littleEndian: bytes.loadUnaligned(fromByteOffset: end, as: UInt32.self))
    guard checksum == expected else {
      throw .corrupt(
        path: path, offset: UInt64(end), expected: "header checksum \(hexadecimal(expected))",
        found: hexadecimal(checksum))
    }
    guard version <= newestVersion else {
      throw .unsupportedVersion(path: path, found: version, supported: newestVersion)
    }
    guard version > 0 || features == 0 else {
      throw .corrupt(path: path, offset: 12, expected: "zero", found: hexadecimal(features))
    }
    var format = FileFormat()
    format.version = version
    format.features = features
    if format.incompatible & ~knownIncompatible != 0 {
      throw .unsupportedFeatures(path: path, features: features, isReadable: false)
    }
    return (reader, format)
  }

  /// Checks that a database with this file can be written to.
  func checkWritable(path: String) throws(StorageError) {
    if readOnlyCompatible != 0 {
      throw .unsupportedFeatures(path: path, features: features, isReadable: true)
    }
  }

  /// All bits, as they stand in the file.
  var features: UInt32 {
    get {
      UInt32(incompatible) | UInt32(readOnlyCompatible) << 8 | UInt32(compatible) << 16
    }
    set {
      incompatible = UInt8(truncatingIfNeeded: newValue)
      readOnlyCompatible = UInt8(truncatingIfNeeded: newValue >> 8)
      compatible = UInt16(truncatingIfNeeded: newValue >> 16)
    }
  }
}

extension ByteWriter {
  /// Appends what both kinds of file begin with.
  mutating func fileHead(
    _ format: FileFormat, magic: UInt64, _ databaseID: DatabaseID, salt: UInt64,
    _ lsn: LogSequenceNumber, time: Int64
  ) {
    uint64(magic)
    uint32(format.version)
    uint32(format.features)
    uint64(databaseID.high)
    uint64(databaseID.low)
    uint64(salt)
    uint64(lsn.rawValue)
    uint64(UInt64(bitPattern: time))
  }
}
