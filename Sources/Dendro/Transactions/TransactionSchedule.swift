import DendroTree

/// Which of the transactions that were started may run: those at one location, above or below run one after the other, in
/// the order in which they were started; the others need not wait for one another.
///
/// Of related transactions each knows those that it waits for. At each place of a tree of locations stands the
/// transaction that was added last: it waits for all related ones before it, and so stands for them.
struct TransactionSchedule {
  /// One transaction. But for `job` only the schedule and its owner look at it, which belong to one thread at a time.
  final class Entry: @unchecked Sendable {
    fileprivate let path: Path
    /// In the order in which they were added.
    fileprivate(set) var number = 0
    /// How many it still waits for.
    fileprivate var waitCount = 0
    /// Those that wait for it.
    fileprivate var followers: [Entry] = []
    fileprivate(set) var hasEnded = false
    let job: TransactionQueue.Job

    init(at path: Path, _ job: TransactionQueue.Job) {
      self.path = path
      self.job = job
    }

    fileprivate func wait(for other: Entry) {
      if other.hasEnded { return }
      other.followers.append(self)
      waitCount += 1
    }
  }

  private final class Place {
    var last: Entry?
    var children: [Key: Place] = [:]

    /// Makes an entry wait for all that stand here and below.
    func collect(for entry: Entry) {
      if let last { entry.wait(for: last) }
      for child in children.values { child.collect(for: entry) }
    }
  }

  private let root = Place()
  private var count = 0

  /// Adds one behind all others.
  ///
  /// - Parameter starter: the one whose block starts it, which it waits for wherever it is.
  /// - Returns: whether it may run at once.
  /// - Complexity: O(keys of the path), and each transaction is looked at by one at a location above it.
  mutating func add(_ entry: Entry, startedBy starter: Entry?) -> Bool {
    count += 1
    entry.number = count
    if let starter { entry.wait(for: starter) }
    var place = root
    for key in entry.path.keys {
      if let last = place.last { entry.wait(for: last) }
      if let child = place.children[key] {
        place = child
      } else {
        let child = Place()
        place.children[key] = child
        place = child
      }
    }
    place.collect(for: entry)
    place.children = [:]
    place.last = entry
    return entry.waitCount == 0
  }

  /// Ends one.
  ///
  /// - Returns: those that may run now, in the order in which they were added.
  func end(_ entry: Entry) -> [Entry] {
    entry.hasEnded = true
    remove(entry, at: root, entry.path.keys.makeIterator())
    var ready: [Entry] = []
    for follower in entry.followers {
      follower.waitCount -= 1
      if follower.waitCount == 0 { ready.append(follower) }
    }
    entry.followers = []
    return ready
  }

  /// Removes it from its place, if it still stands there, and the places that are empty then.
  private func remove(_ entry: Entry, at place: Place, _ keys: some IteratorProtocol<Key>) {
    var keys = keys
    guard let key = keys.next() else {
      if place.last === entry { place.last = nil }
      return
    }
    guard let child = place.children[key] else { return }
    remove(entry, at: child, keys)
    if child.last == nil, child.children.isEmpty { place.children[key] = nil }
  }
}
