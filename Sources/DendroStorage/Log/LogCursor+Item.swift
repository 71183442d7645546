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

  /// Bytes that violate the format.
  package struct Problem: Hashable, Sendable, CustomStringConvertible {
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

    package init(path: String, offset: UInt64, expected: String, found: String) {
      self.path = path
      self.offset = offset
      self.expected = expected
      self.found = found
    }

    package var description: String {
      let unit = skippedByteCount == 1 ? "byte" : "bytes"
      let skipped = skippedByteCount > 0 ? "; \(skippedByteCount) \(unit) passed over" : ""
      return "\(path), offset \(offset): expected \(expected), found \(found)\(skipped)"
    }
  }
}
