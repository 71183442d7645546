extension LogWalk {
  func missingSuccessor() -> StorageError {
    .corrupt(
      path: scan.segment.path, offset: scan.offset,
      expected: "the successor \(SegmentName(firstLSN: lastLSN.next)) that the seal names",
      found: "no such segment")
  }

  func corruption(
    _ tail: LogTail, before next: SegmentReader?, _ fault: ReadFault
  ) -> StorageError {
    if tail.remainder == .seal && tail.successor == .none { return missingSuccessor() }
    let writes = "(\(tail.row.reason); from LSN \(lastLSN.next) on)"
    let path = scan.segment.path
    if tail.successor == .denies, tail.remainder != .damaged, let next {
      if next.header.firstLSN > lastLSN.next {
        return .corrupt(
          path: path, offset: scan.offset,
          expected:
            "records up to LSN \(next.header.firstLSN.rawValue - 1), before \(next.name) \(writes)",
          found: "LSN \(lastLSN) as the last")
      }
      if let (offset, fault) = scan.link.fault(of: next.header) {
        return .corrupt(
          path: next.path, offset: offset, expected: "\(fault.expected) \(writes)",
          found: fault.found)
      }
    }
    if tail.remainder == .nothing {
      return .corrupt(
        path: path, offset: scan.offset, expected: "writes up to LSN \(durableUpTo) \(writes)",
        found: "the end of the log")
    }
    return .corrupt(
      path: path, offset: scan.offset, expected: "\(fault.expected) \(writes)",
      found: fault.found)
  }
}
