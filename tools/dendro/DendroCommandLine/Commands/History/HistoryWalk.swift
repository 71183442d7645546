import DendroEngine
import DendroStorage
import DendroTree

/// Replays the log from the oldest state that is kept, write by write.
struct HistoryWalk {
  private let directory: DatabaseDirectory
  /// The state with which it begins.
  let base: LogSequenceNumber
  /// Of its last write; nil before the first one.
  let baseTime: Int64?
  let baseRoot: Node

  /// - Parameter since: the oldest write that is wanted; nil for the oldest that there is.
  init(_ directory: DatabaseDirectory, since: HistoryPoint? = nil) throws {
    self.directory = directory
    let contents = try directory.contents()
    guard !contents.isEmpty else {
      throw Failure.noDatabase(at: directory.path)
    }
    var chosen: (lsn: LogSequenceNumber, reader: CheckpointReader?)?
    var damage: StorageError?
    if contents.segments.first?.firstLSN == LogSequenceNumber(1) { chosen = (.zero, nil) }
    for lsn in contents.checkpoints where lsn.next >= contents.segments.first?.firstLSN ?? .zero {
      guard chosen == nil || since != nil else { break }
      do throws(StorageError) {
        let reader = try CheckpointReader.open(directory, lsn: lsn)
        let isBefore =
          switch since {
          case .lsn(let first): lsn < first
          case .time(let time): reader.time < time
          case nil: false
          }
        guard chosen == nil || isBefore else { break }
        chosen = (lsn, reader)
      } catch {
        damage = damage ?? error
      }
    }
    guard let chosen else {
      throw damage.map { Failure($0) } ?? Failure(.problem, "the log has no beginning")
    }
    base = chosen.lsn
    baseTime = chosen.reader?.time
    let progress = Progress("reading")
    baseRoot =
      try chosen.reader.map { reader throws(StorageError) in
        try CheckpointCoding.decode(reader, progress: progress.recovery)
      } ?? .empty
  }

  /// - Parameters:
  ///   - end: the last state; nil for the present.
  ///   - visit: called for each write with what it changed.
  /// - Throws: damage of the log; what `visit` throws.
  func run(
    upTo end: HistoryPoint?, _ visit: (LoggedWrite, [Change], Node) throws -> Void
  ) throws {
    if case .lsn(let lsn) = end, lsn < base {
      throw Failure(
        .problem, "the state after write \(lsn) is not kept: the history begins at write \(base)")
    }
    var root = baseRoot
    var lsn = base
    var failure: (any Error)?
    var isAtEnd = false
    let progress = Progress("replaying")
    let cursor = LogCursor(directory, after: base)
    while failure == nil, !isAtEnd,
      try cursor.step({ item in
        guard failure == nil, !isAtEnd else { return }
        do {
          switch item {
          case .segment: break
          case .problem(let problem):
            guard problem.isTail else { throw problem.error }
          case .record(let record, _, let payload):
            guard let payload else { return }
            progress.update(record.endOffset, of: nil, record.segment.fileName)
            for write in RecordWrites(record, payload).writes where write.lsn > lsn {
              isAtEnd =
                switch end {
                case .lsn(let last): write.lsn > last
                case .time(let time): write.time > time
                case nil: false
                }
              if isAtEnd { return }
              lsn = write.lsn
              let changes = root.apply(write.write)
              try visit(write, changes, root)
            }
          }
        } catch { failure = error }
      })
    {}
    progress.clear()
    if let failure { throw failure }
    if case .lsn(let wanted) = end, wanted > lsn {
      throw Failure(.problem, "there is no write \(wanted) yet: the last one is \(lsn)")
    }
  }

  /// What is not kept any more, as a note for people.
  var note: String? {
    base == .zero
      ? nil : "the history begins at write \(base): what happened before it is not kept any more"
  }
}

extension Change {
  /// What the change is at or below a path: the place of it, and the nodes there before and after.
  func concerning(_ path: Path) -> (path: Path, old: Node, new: Node)? {
    if path.isPrefix(of: self.path) { return (self.path, replaced, new) }
    guard let below = path.relative(to: self.path) else { return nil }
    return (path, replaced.node(at: below), new.node(at: below))
  }
}
