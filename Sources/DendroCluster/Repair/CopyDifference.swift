import DendroStorage

/// What a server's copy of the log has that PostgreSQL's log lacks.
struct CopyDifference {
  /// How the two logs belong together.
  enum Kind {
    /// PostgreSQL's log is the beginning of the copy, whose files have the rest.
    case beginning(LogPosition)
    /// PostgreSQL's log has gone on with other writes.
    case other
    /// Neither can be proved, for this reason.
    case unproven(String)
  }

  var kind: Kind
  /// The last write that both have; nil if that cannot be told.
  var common: LogSequenceNumber?
  /// The last write in PostgreSQL.
  var sharedLSN: LogSequenceNumber
  /// The last write of which the copy is known.
  var last: LogSequenceNumber
  /// What PostgreSQL had taken, and the copy's files have lost as well: the writes behind `last`, if the rest can be put back.
  var lost: ClosedRange<UInt64>?

  /// Which writes only the copy has; nil if that cannot be told.
  var question: ClosedRange<UInt64>? {
    guard let common, common < last else { return nil }
    return common.next.rawValue...last.rawValue
  }

  /// The writes as a sentence begins with them.
  var subject: String {
    guard let question else { return "the writes up to \(last) are in question" }
    let count = question.count
    return count == 1
      ? "1 write is in question, \(last)"
      : "\(count) writes are in question, \(question.lowerBound) to \(question.upperBound)"
  }

  /// What cannot be put back from this directory, as the end of a sentence; empty if all can.
  private var loss: String {
    guard let lost else { return "" }
    let writes =
      lost.count == 1
      ? "write \(lost.lowerBound)" : "writes \(lost.lowerBound) to \(lost.upperBound)"
    return
      "; this directory has lost \(writes) after them, which another server's directory may have"
  }

  /// Which writes are in question, and what an operator can do about it.
  ///
  /// - Parameter directory: of the server.
  func advice(for directory: String) -> String {
    let acceptLoss = "'dendro cluster accept-loss \(directory)'"
    switch kind {
    case .beginning:
      return
        "\(subject): 'dendro cluster restore \(directory)' puts them into PostgreSQL again, \(acceptLoss) gives them up\(loss)"
    case .other:
      let place = common.map { " from write \($0.next) on" } ?? ""
      return
        "\(subject): PostgreSQL has other writes\(place), so that 'dendro cluster restore' cannot put them there; \(acceptLoss) gives them up"
    case .unproven(let reason):
      return
        "\(subject): \(reason), so that 'dendro cluster restore' cannot put them into PostgreSQL; \(acceptLoss) gives them up"
    }
  }
}

extension ClusterError {
  /// The same error; if PostgreSQL was set back, with the writes that are in question, as far as that can be found out.
  ///
  /// - Parameter comparison: of the server's copy with PostgreSQL.
  func naming(writesOf comparison: CopyComparison?) -> ClusterError {
    guard case .setBack(let reason) = self, let comparison,
      let difference = try? comparison.run()
    else { return self }
    return .setBack("\(reason). \(difference.advice(for: comparison.directory))")
  }
}
