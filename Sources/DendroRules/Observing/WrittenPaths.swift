import DendroTree

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

  /// The location, if there is but one: nothing is allocated for it.
  private var only: Path?
  /// In order; none is above another.
  private var paths: [Path] = []
  /// Locations that keep their value and get another priority.
  private var priorities: [Path] = []

  init(_ request: RuleRequest) {
    guard request.query == nil else { return }
    if request.locations.count == 1, !request.locations[0].isPriority {
      only = request.locations[0].path
      return
    }
    priorities = request.locations.filter(\.isPriority).map(\.path).sorted()
    for path in request.locations.filter({ !$0.isPriority }).map(\.path).sorted() {
      // The ones below a path follow it.
      if let last = paths.last, last.isPrefix(of: path) { continue }
      paths.append(path)
    }
  }

  /// - Parameter path: the stored bytes of a path.
  func relation(to path: UnsafeRawBufferPointer) -> Relation {
    if let only {
      return only.storedBytes.withUnsafeBytes { only in
        only.isPrefix(of: path) ? .written : path.isPrefix(of: only) ? .above : .apart
      }
    }
    // Each key is preceded by its length, so a prefix in bytes is a prefix in keys.
    let index = Self.firstIndex(after: path, in: paths)
    if index > 0, paths[index - 1].storedBytes.withUnsafeBytes({ $0.isPrefix(of: path) }) {
      return .written
    }
    if index < paths.count, paths[index].storedBytes.withUnsafeBytes({ path.isPrefix(of: $0) }) {
      return .above
    }
    let priority = Self.firstIndex(after: path, in: priorities)
    if priority > 0, priorities[priority - 1].storedBytes.withUnsafeBytes({ $0.isEqual(to: path) })
    {
      return .above
    }
    return .apart
  }

  private static func firstIndex(after path: UnsafeRawBufferPointer, in paths: [Path]) -> Int {
    var (low, high) = (0, paths.count)
    while low < high {
      let middle = (low + high) / 2
      let isAfter = paths[middle].storedBytes.withUnsafeBytes {
        Path.storedBytes(path, precede: $0)
      }
      if isAfter { high = middle } else { low = middle + 1 }
    }
    return low
  }
}
