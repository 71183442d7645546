import DendroTree

/// Collects what a verdict depends on, while it is made.
struct ObservationRecorder {
  private var observations: [RuleObservations.Observation] = []
  private let written: WrittenPaths
  private let includesWritten: Bool

  init(_ request: RuleRequest) {
    written = WrittenPaths(request)
    includesWritten = request.hasServerValues
  }

  mutating func note(_ path: Path, isNew: Bool, _ sight: RuleObservations.Sight) {
    var isNew = isNew
    if isNew {
      switch written.relation(to: path) {
      case .written where !includesWritten: return
      case .written, .above: break
      // There the new tree is the old one, which is cheaper to have.
      case .apart: isNew = false
      }
    }
    let observation = RuleObservations.Observation(path: path, isNew: isNew, sight: sight)
    if observations.last != observation { observations.append(observation) }
  }

  func finish(_ inputs: RuleObservations.Inputs, isComplete: Bool) -> RuleObservations {
    RuleObservations(inputs: inputs, observations: observations, isComplete: isComplete)
  }
}

/// The locations that a write gives new values.
struct WrittenPaths {
  enum Relation {
    /// The write says all that is there.
    case written
    /// A part of what is there may come from the write.
    case above
    /// The write changes nothing there.
    case apart
  }

  /// In order; none is above another.
  private let paths: [Path]
  /// Locations that keep their value and get another priority.
  private let priorities: [Path]

  init(_ request: RuleRequest) {
    guard request.query == nil else {
      (paths, priorities) = ([], [])
      return
    }
    priorities = request.locations.filter(\.isPriority).map(\.path).sorted()
    var paths: [Path] = []
    for path in request.locations.filter({ !$0.isPriority }).map(\.path).sorted() {
      // The ones below a path follow it.
      if let last = paths.last, last.isPrefix(of: path) { continue }
      paths.append(path)
    }
    self.paths = paths
  }

  func relation(to path: Path) -> Relation {
    let index = Self.firstIndex(after: path, in: paths)
    if index > 0, paths[index - 1].isPrefix(of: path) { return .written }
    if index < paths.count, path.isPrefix(of: paths[index]) { return .above }
    let priority = Self.firstIndex(after: path, in: priorities)
    if priority > 0, priorities[priority - 1] == path { return .above }
    return .apart
  }

  private static func firstIndex(after path: Path, in paths: [Path]) -> Int {
    var (low, high) = (0, paths.count)
    while low < high {
      let middle = (low + high) / 2
      if path < paths[middle] { high = middle } else { low = middle + 1 }
    }
    return low
  }
}
