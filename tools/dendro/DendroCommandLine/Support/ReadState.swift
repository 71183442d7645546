import DendroEngine
import DendroStorage
import DendroTree

/// The tree that a reading verb shows: that of the present, of `--at`, or of a damaged directory.
struct ReadState {
  let root: Node
  let lsn: LogSequenceNumber
  let location: Location

  /// What is at the location.
  var node: Node {
    let node = root.node(at: location.path)
    return location.isPriority ? node.priority.map { Node($0) } ?? .empty : node
  }

  /// Opens the database for as long as it takes to get the tree: the reader of a pipe may take long, and files
  /// wait to be removed meanwhile.
  init(_ arguments: Arguments, path: String?) throws {
    let location = try Location(path)
    self.location = location
    let point = try HistoryPoint(arguments, "at")
    do {
      let session = try Session.reading(arguments, path: path)
      (root, lsn) = try session.closing {
        guard let point else { return session.engine.head }
        guard let state = try session.engine.state(at: point) else {
          throw Failure(.problem, "the database was closed meanwhile")
        }
        return (state.root, state.lsn)
      }
    } catch let error as EngineError where error.isDamage {
      guard point != nil || arguments.has(.salvage) else { throw error }
      let state = try Self.salvage(arguments, point, error)
      (root, lsn) = (state.root, state.lsn)
    }
  }

  /// A state of a damaged directory that is proven nevertheless.
  private static func salvage(
    _ arguments: Arguments, _ point: HistoryPoint?, _ error: EngineError
  ) throws -> HistoryState {
    let directory = try DatabaseDirectory.open(
      arguments.directoryPath(), environment: .system, mode: .readOnly)
    defer { directory.close() }
    let progress = Progress("reading")
    let salvage = try Salvage(directory, progress: progress.recovery)
    let state: HistoryState? =
      switch point {
      case .lsn(let lsn): try salvage.state(at: lsn)
      case .time(let time): try salvage.state(atTime: time)
      case nil: try salvage.lastProven.flatMap { try salvage.state(at: $0) }
      }
    progress.clear()
    guard let state else {
      let ranges = salvage.provenRanges
      var failure = Failure(describing: error)
      failure.message +=
        ranges.isEmpty
        ? "\n  no state is proven"
        : "\n  the states that are proven are those after the writes \(Format.ranges(ranges))"
      throw failure
    }
    Terminal.note(
      "dendro: the database is damaged; this is its state after write \(state.lsn), which is proven"
        + (state.lsn < salvage.end ? ", of \(salvage.end)" : ""))
    return state
  }
}

extension EngineError {
  /// Whether files are damaged, so that salvaging may help.
  fileprivate var isDamage: Bool {
    switch self {
    case .storage(.corrupt), .storage(.limit): true
    default: false
    }
  }
}

extension Command.Option {
  static let at = Self(
    name: "at", value: "WHEN",
    summary: "as it was after this LSN, or at this time in UTC (2026-11-21 04:00, '10 minutes ago')"
  )
  static let salvage = Self(
    name: "salvage", summary: "of a damaged database, the last state that is proven")
}
