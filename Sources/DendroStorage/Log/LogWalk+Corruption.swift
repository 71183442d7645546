extension LogWalk {
  func missingSuccessor(_ segment: SegmentReader) -> StorageError {
    .corrupt(
      path: segment.path, offset: offset,
      expected: "the successor \(SegmentName(firstLSN: lastLSN.next)) that the seal names",
      found: "no such segment")
  }

  func corruption(
    _ tail: LogTail, in segment: SegmentReader, before next: SegmentReader?, _ fault: Fault
  ) -> StorageError {
    if tail.remainder == .seal && tail.successor == .none { return missingSuccessor(segment) }
    let writes = "(\(tail.row.reason); from LSN \(lastLSN.next) on)"
    if tail.successor == .denies, tail.remainder != .damaged, let next {
      if next.header.firstLSN > lastLSN.next {
        return .corrupt(
          path: segment.path, offset: offset,
          expected:
            "records up to LSN \(next.header.firstLSN.rawValue - 1), before \(next.name) \(writes)",
          found: "LSN \(lastLSN) as the last")
      }
      if next.header.firstLSN < lastLSN.next {
        return .corrupt(
          path: next.path, offset: 40, expected: "first LSN \(lastLSN.next) \(writes)",
          found: "\(next.header.firstLSN)")
      }
      return .corrupt(
        path: next.path, offset: 56,
        expected: "previous checksum \(hexadecimal(checksum)) \(writes)",
        found: hexadecimal(next.header.previousChecksum))
    }
    if tail.remainder == .nothing {
      return .corrupt(
        path: segment.path, offset: offset, expected: "writes up to LSN \(durableUpTo) \(writes)",
        found: "the end of the log")
    }
    return .corrupt(
      path: segment.path, offset: offset, expected: "\(fault.expected) \(writes)",
      found: fault.found)
  }
}
