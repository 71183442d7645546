extension LogCursor {
  /// What the cursor reports.
  package enum Item {
    /// A segment begins.
    case segment(SegmentHeader, path: String, byteCount: UInt64)
    /// The payload is decompressed and checked, and valid during the call only. It is nil if it cannot be
    /// read, which was reported as a problem before.
    case record(RecordInfo, path: String, payload: UnsafeRawBufferPointer?)
    /// Damage, or the remains of a crash.
    case problem(Problem)
  }

  /// Bytes that violate the format, or a file that is missing.
  package struct Problem: Hashable, Sendable, CustomStringConvertible {
    /// Of the file, or of the directory if something is missing from it.
    package var path: String
    package var offset: UInt64
    package var expected: String
    package var found: String
    /// Bytes that were passed over to the next valid record, or to the end.
    package var skippedByteCount: UInt64 = 0
    /// Whether the bytes are what a crash leaves: at the end of the last segment or in place of a seal, and
    /// not proven durable.
    package var isTail = false
    /// Whether a record's bytes may be right, and depend on those of a damaged record before it.
    package var dependsOnDamage = false
    /// Whether `expected` is not there at all; `found` is then how that is known.
    package private(set) var isMissing = false
    /// The last write that displaced records prove durable, among the bytes that were passed over; nil if none do. Only
    /// salvage reads such records.
    package var displacedUpTo: LogSequenceNumber?

    package init(path: String, offset: UInt64, expected: String, found: String) {
      self.path = path
      self.offset = offset
      self.expected = expected
      self.found = found
    }

    /// Something that is missing from a directory.
    package init(missing what: String, from directory: String, reason: String) {
      self.init(path: directory, offset: 0, expected: what, found: reason)
      isMissing = true
    }

    /// What an error says of the files; nil if that is not damage.
    package init?(_ error: StorageError) {
      switch error {
      case .corrupt(let path, let offset, let expected, let found):
        self.init(path: path, offset: offset, expected: expected, found: found)
      case .missing(let directory, let what, let reason):
        self.init(missing: what, from: directory, reason: reason)
      default: return nil
      }
    }

    /// Whether both are about one place, or about one missing thing.
    package func isAt(_ other: Problem) -> Bool {
      path == other.path && offset == other.offset && isMissing == other.isMissing
        && (!isMissing || expected == other.expected)
    }

    package var error: StorageError {
      isMissing
        ? .missing(directory: path, what: expected, reason: found)
        : .corrupt(path: path, offset: offset, expected: expected, found: found)
    }

    package var description: String {
      if isMissing { return "\(error)" }
      let unit = skippedByteCount == 1 ? "byte" : "bytes"
      let skipped = skippedByteCount > 0 ? "; \(skippedByteCount) \(unit) passed over" : ""
      let displaced =
        displacedUpTo.map { ", with displaced records, which prove write \($0) durable" } ?? ""
      return
        "\(path), offset \(offset): expected \(expected), found \(found)\(skipped)\(displaced)"
    }
  }
}
