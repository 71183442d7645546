import DendroEngine
import DendroStorage
import DendroTree

/// The tree that a reading verb shows: that of the present, of a point in the past, or of a damaged directory.
struct ReadState {
  let root: Node
  let lsn: LogSequenceNumber
  let location: Location

  /// What is at the location.
  var node: Node {
    let node = root.node(at: location.path)
    return location.isPriority ? node.priority.map { Node($0) } ?? .empty : node
  }

  /// The state that `--at` asks for, or the present one.
  init(_ arguments: Arguments, path: String?) throws {
    location = try Location(path)
    let state = try Self.states(
      of: arguments.directoryPath(), at: [HistoryPoint(arguments, "at")], location.path,
      salvages: arguments.has(.salvage))[0]
    (root, lsn) = (state.root, state.lsn)
  }

  /// Opens the database for as long as it takes to get the trees: the reader of a pipe may take long, and files
  /// wait to be removed meanwhile.
  ///
  /// - Parameters:
  ///   - points: nil for the present.
  ///   - location: what is read of the present.
  ///   - salvages: whether a damaged directory's last proven state stands for its present.
  ///   - notesDamage: whether a line says that the directory is damaged.
  static func states(
    of path: String, at points: [HistoryPoint?], _ location: Path = .root, salvages: Bool = false,
    notesDamage: Bool = true
  ) throws -> [HistoryState] {
    do {
      let progress = Progress("opening")
      let shared = try SharedEngine.engine(for: path)
      if shared == nil, points == [nil], !location.isRoot {
        return [try Engine.state(of: location, in: path, progress: progress.recovery)]
      }
      let engine =
        try shared ?? Engine.open(at: path, mode: .readOnly, progress: progress.recovery)
      defer { if shared == nil { try? engine.close() } }
      return try points.map { point in
        guard let point else {
          _ = try engine.view(at: location)
          let head = engine.head
          return HistoryState(roots: TreeRoots(data: head.root), lsn: head.lsn)
        }
        guard let state = try engine.state(at: point) else {
          throw Failure(.problem, "the database was closed meanwhile")
        }
        return state
      }
    } catch let error as EngineError where error.mayBeSalvaged {
      return try salvage(
        path, at: points, location, orLastProven: salvages, notesDamage: notesDamage,
        because: error)
    }
  }

  /// The present state of a damaged directory, of which all that is at a location is there.
  private static func present(
    of salvage: Salvage, at location: Path, because error: EngineError
  ) throws -> HistoryState {
    guard let present = try salvage.present() else { throw error }
    if let hole = present.holes.first(where: { $0.concerns(location) }) {
      var failure = Failure(describing: error)
      failure.message += "\n  of \(location), it has lost \(hole)"
      throw failure
    }
    return present.state
  }

  /// A state of the past of a damaged directory that is proven nevertheless, with both roots, and its database.
  static func proven(
    of path: String, at point: HistoryPoint, because error: EngineError
  ) throws -> (state: HistoryState, databaseID: DatabaseID) {
    let state = try salvage(
      path, at: [point], .root, orLastProven: false, notesDamage: true, because: error)[0]
    let directory = try DatabaseDirectory.open(path, environment: .system, mode: .readOnly)
    defer { directory.close() }
    guard let id = try Salvage(directory).databaseID else { throw error }
    return (state, id)
  }

  /// States of a damaged directory that are proven nevertheless.
  private static func salvage(
    _ path: String, at points: [HistoryPoint?], _ location: Path, orLastProven salvages: Bool,
    notesDamage: Bool, because error: EngineError
  ) throws -> [HistoryState] {
    let directory = try DatabaseDirectory.open(path, environment: .system, mode: .readOnly)
    defer { directory.close() }
    let progress = Progress("reading")
    let salvage = try Salvage(directory, progress: progress.recovery)
    if !salvages, !points.contains(where: { $0 != nil }) {
      let state = try present(of: salvage, at: location, because: error)
      progress.clear()
      if notesDamage {
        Terminal.note(
          "dendro: the database is damaged; \(location) is whole, as of write \(state.lsn)")
      }
      return points.map { _ in state }
    }
    return try points.map { point in
      let state: HistoryState? =
        switch point {
        case .lsn(let lsn): try salvage.state(at: lsn)
        case .time(let time): try salvage.state(atTime: time)
        case nil where salvages: try salvage.lastProvenState()
        case nil: nil
        }
      progress.clear()
      guard let state else {
        let ranges = salvage.provenRanges
        var failure = Failure(describing: error)
        failure.message +=
          ranges.isEmpty
          ? "\n  no state is proven"
          : "\n  the states that are proven are those after the writes \(Format.ranges(ranges))"
        if ranges.isEmpty {
          failure.hint = "'dendro repair' saves what is left of it into a new directory"
        }
        throw failure
      }
      Terminal.note(
        "dendro: the database is damaged; this is its state after write \(state.lsn), which is proven"
          + (state.lsn < salvage.end ? ", of \(salvage.end)" : ""))
      return state
    }
  }
}

extension EngineError {
  /// Whether files are damaged or cannot be read, so that salvaging may help.
  var mayBeSalvaged: Bool {
    switch self {
    case .storage(.limit), .storage(.io(_, _, _, .inputOutput)): true
    default: isDamage
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
