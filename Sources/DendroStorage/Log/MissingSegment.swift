/// A segment that the seal before it names, and that is not there.
struct MissingSegment {
  /// A segment that is there.
  struct Neighbour {
    var path: String
    var firstLSN: LogSequenceNumber

    var fileName: String { path.split(separator: "/").last.map(String.init) ?? path }
  }

  let name: SegmentName
  /// The file with that seal.
  private let predecessor: Neighbour
  /// Nil at the end of the log.
  private let successor: Neighbour?

  /// - Parameter last: the last write before the seal.
  init(behind predecessor: Neighbour, after last: LogSequenceNumber, before successor: Neighbour?) {
    name = SegmentName(firstLSN: last.next)
    self.predecessor = predecessor
    self.successor = successor
  }

  func problem(in directory: DatabaseDirectory) -> LogCursor.Problem {
    var reason = "the seal of \(predecessor.fileName) names it"
    if let successor {
      reason +=
        ", and the next segment, \(successor.fileName), begins with write \(successor.firstLSN)"
    }
    return LogCursor.Problem(missing: name.fileName, from: directory.path, reason: reason)
  }
}

extension SegmentReader {
  var neighbour: MissingSegment.Neighbour {
    MissingSegment.Neighbour(path: path, firstLSN: header.firstLSN)
  }
}

extension LogSalvage.Segment {
  var neighbour: MissingSegment.Neighbour {
    MissingSegment.Neighbour(path: path, firstLSN: header.firstLSN)
  }
}
