import DendroEngine
import DendroStorage
import DendroTree

extension Command {
  static let restore = Command(
    name: "restore", summary: "make a database of a state of an archive",
    discussion: """
      TARGET is a new directory; it becomes a database as of the given write or time, or of the last write in the
      archive. DIRECTORY is an archive, a backup or a database: of each, any state in its history can be restored; of a
      damaged one, any that is proven, with --at. If it is interrupted, no verb takes TARGET for a database; the next restore into it starts over.
      """,
    parameters: [
      .directory,
      Parameter(
        name: "TARGET",
        summary: "a directory that does not exist yet, or holds an unfinished one"),
    ],
    options: [.at, .json],
    examples: [
      Example(line: "dendro restore /backups/db db", summary: "the last state"),
      Example(
        line: "dendro restore /backups/db before --at '2026-11-21 04:00'",
        summary: "as it was then, in UTC"),
    ],
    run: { arguments in
      let name = arguments.positional[1]
      let target = try Arguments.absolutePath(name, "TARGET")
      guard !Platform.exists(target) || DatabaseDirectory.isUnfinishedBackup(target) else {
        throw Failure(.problem, "\(name) exists already")
      }
      let point = try HistoryPoint(arguments, "at")
      let source = try arguments.directoryPath()
      let progress = Progress("restore")
      let state = try restored(from: source, at: point, to: target)
      let seconds = progress.seconds
      let copy = try Engine.open(at: target, mode: .readOnly)
      let head = try copy.wholeHead()
      let leaves = head.root.leafCount()
      try copy.close()
      guard head.lsn == state.lsn, head.root == state.root else {
        throw Failure(.damaged, "\(name) does not hold the state that was restored")
      }
      let terminal = try Terminal(color: arguments.value("color"))
      if arguments.wantsJSON {
        try terminal.print(
          JSONValue.object([
            ("target", .string(name)), ("lsn", .unsigned(head.lsn.rawValue)),
            ("time", .integer(state.time)), ("leaves", .count(leaves)),
            ("seconds", .number(seconds)),
          ]).text)
      } else {
        let time = state.lsn == .zero ? "" : " of \(Format.time(state.time))"
        try terminal.report(
          "\(Format.count(leaves, "leaf")) as of write \(head.lsn)\(time) in \(Format.seconds(seconds)); "
            + "read back and good")
      }
      try terminal.flush()
      return .success
    })
}

/// Writes a state of a directory; the last one without a point. Of a damaged one, a state that is proven.
private func restored(
  from path: String, at point: HistoryPoint?, to target: String
) throws -> HistoryState {
  let progress = Progress("opening")
  var engine: Engine?
  defer { try? engine?.close() }
  let state: HistoryState
  let id: DatabaseID
  do throws(EngineError) {
    let opened = try Engine.open(at: path, mode: .readOnly, progress: progress.recovery)
    engine = opened
    progress.clear()
    guard let found = opened.databaseID else { throw .noHistory }
    guard let past = try opened.state(at: point ?? .lsn(opened.head.lsn)) else { throw .closed }
    (state, id) = (past, found)
  } catch {
    progress.clear()
    guard let point, error.mayBeSalvaged else { throw error }
    (state, id) = try ReadState.proven(of: path, at: point, because: error)
  }
  try Engine.restore(state, databaseID: id, to: target, environment: .system)
  return state
}
