extension LogWalk {
  func missingSuccessor(before next: SegmentReader? = nil) -> StorageError {
    MissingSegment(behind: scan.segment.neighbour, after: lastLSN, before: next?.neighbour)
      .problem(in: directory).error
  }

  func corruption(
    _ tail: LogTail, before next: SegmentReader?, _ fault: ReadFault
  ) -> StorageError {
    if tail.remainder == .seal && tail.successor == .none { return missingSuccessor() }
    let writes = "(\(tail.row.reason); from LSN \(lastLSN.next) on)"
    let path = scan.segment.path
    if tail.successor == .denies, tail.remainder != .damaged, let next {
      if next.header.firstLSN > lastLSN.next {
        if tail.remainder == .seal { return missingSuccessor(before: next) }
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
        path: path, offset: scan.offset,
        expected: "writes up to LSN \(durableUpTo)"
          + (durableUpTo == provenDurable ? ", as a checkpoint says, " : " ") + writes,
        found: "the end of the log")
    }
    return .corrupt(
      path: path, offset: scan.offset, expected: "\(fault.expected) \(writes)",
      found: fault.found)
  }
}
