extension SegmentReader {
  /// Copies bytes of the file into another one, from `first` on.
  func copy(
    from start: UInt64, to end: UInt64, into target: any File, path targetPath: String,
    at first: UInt64 = 0
  ) throws(StorageError) {
    var place = start
    while place < end {
      let wanted = Int(min(end - place, UInt64(Self.windowByteCount)))
      let bytes = try bytes(at: place, count: wanted)
      if bytes.isEmpty {
        throw .corrupt(
          path: path, offset: place, expected: "bytes up to \(end), as before",
          found: "the end of the file")
      }
      let part = UnsafeRawBufferPointer(rebasing: bytes.prefix(wanted))
      try target.writeAll(part, at: first + (place - start), path: targetPath)
      place += UInt64(part.count)
    }
  }
}
