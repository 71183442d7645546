import DendroEngine
import DendroStorage
import DendroTree

/// Which of the log's writes are wanted.
struct LogFilter {
  var path: PathPattern?
  /// Names as `LogLines.operation` gives them; empty for all.
  var operations: Set<String> = []
  /// Whether what writes change of the second root is looked at, and not the data.
  var isOfSecondRoot = false
  /// A text that the path or the value has.
  var text: String?
  var lsn: ClosedRange<UInt64> = 0...UInt64.max
  var time: ClosedRange<Int64> = Int64.min...Int64.max

  /// Those writes of a record that are wanted, with what is wanted of them.
  func wanted(_ writes: [LoggedWrite]) -> [LoggedWrite] {
    writes.compactMap { logged in
      var logged = logged
      if isOfSecondRoot {
        guard let change = logged.system else { return nil }
        logged.write = change
      } else if logged.write.isNothing {
        return nil
      }
      return admits(logged) ? logged : nil
    }
  }

  private func admits(_ write: LoggedWrite) -> Bool {
    guard lsn.contains(write.lsn.rawValue), time.contains(write.time) else { return false }
    guard operations.isEmpty || operations.contains(LogLines.operation(write.write)) else {
      return false
    }
    return concernsPath(write.write) && hasText(write.write)
  }

  private func concernsPath(_ write: Write) -> Bool {
    guard let path else { return true }
    let target = write.path
    guard case .update(_, let entries) = write else { return path.concerns(target) }
    return path.concerns(target)
      && entries.contains { path.concerns(target.appending($0.path)) }
  }

  private func hasText(_ write: Write) -> Bool {
    guard let text else { return true }
    if "\(write.path)".contains(text) { return true }
    switch write {
    case .set(_, let node): return Self.json(node).contains(text)
    case .increment(_, let delta): return Self.json(Node(delta.scalar)).contains(text)
    case .setPriority(_, let priority):
      return priority.map { Self.json(Node($0)).contains(text) } ?? false
    case .remove: return false
    case .update(let base, let entries):
      return entries.contains { entry in
        if "\(base.appending(entry.path))".contains(text) { return true }
        return switch entry.action {
        case .set(let node): Self.json(node).contains(text)
        case .remove: false
        case .increment(let delta): Self.json(Node(delta.scalar)).contains(text)
        case .setPriority(let priority):
          priority.map { Self.json(Node($0)).contains(text) } ?? false
        }
      }
    }
  }

  private static func json(_ node: Node) -> String {
    JSONWriter.string(node, style: JSONStyle(.export))
  }

  func admits(_ record: RecordInfo) -> Bool {
    record.count == 0
      ? lsn.contains(record.lastLSN.rawValue)
      : record.lastLSN.rawValue >= lsn.lowerBound && record.firstLSN.rawValue <= lsn.upperBound
  }

  /// Whether no record from this one on can have a write that is wanted: numbers and times only rise.
  func isBehind(_ record: RecordInfo) -> Bool {
    record.firstLSN.rawValue > lsn.upperBound
      || (record.kind == .writes && record.baseTime > time.upperBound)
  }
}
