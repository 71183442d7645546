import DendroTree

/// Which of the transactions that were started may run: those at one location, above or below run one after the other, in
/// the order in which they were started; the others need not wait for one another.
///
/// Of related transactions each knows those that it waits for. At each place of a tree of locations stands the
/// transaction that was added last: it waits for all related ones before it, and so stands for them.
struct TransactionSchedule {
  /// One transaction. But for `job` only the schedule and its owner look at it, which belong to one thread at a time.
  final class Entry: @unchecked Sendable {
    fileprivate typealias Entries = [ObjectIdentifier: Entry]

    let job: TransactionJob
    /// In the order in which they were added.
    fileprivate(set) var number = 0
    /// Those that it waits for.
    fileprivate var predecessors: Entries = [:]
    /// Those that wait for it.
    fileprivate var followers: Entries = [:]
    /// Those of its predecessors that stood in the tree where it stands now, or below.
    fileprivate var replaced: Entries = [:]
    fileprivate var hasEnded = false

    init(_ job: TransactionJob) { self.job = job }

    fileprivate var path: Path { job.path }

    /// Whether it waits for no other.
    var isReady: Bool { predecessors.isEmpty }

    fileprivate func wait(for other: Entry) {
      if other.hasEnded { return }
      other.followers[ObjectIdentifier(self)] = self
      predecessors[ObjectIdentifier(other)] = other
    }

    /// Waits for another no longer.
    fileprivate func forget(_ other: Entry) {
      predecessors[ObjectIdentifier(other)] = nil
      replaced[ObjectIdentifier(other)] = nil
    }
  }

  private final class Place {
    var last: Entry?
    var children: [Key: Place] = [:]

    /// The place below at a key, which is made if it is missing.
    func child(_ key: Key) -> Place {
      if let child = children[key] { return child }
      let child = Place()
      children[key] = child
      return child
    }

    /// Has an entry stand here again. Of two the newer one stands for the other, for which it waits.
    func stand(_ entry: Entry) {
      guard let other = last else { return last = entry }
      let (older, newer) = other.number < entry.number ? (other, entry) : (entry, other)
      newer.replaced[ObjectIdentifier(older)] = older
      last = newer
    }

    /// Makes an entry wait for all that stand here and below.
    func collect(for entry: Entry) {
      if let last {
        entry.wait(for: last)
        entry.replaced[ObjectIdentifier(last)] = last
      }
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
      place = place.child(key)
    }
    place.collect(for: entry)
    place.children = [:]
    place.last = entry
    return entry.predecessors.isEmpty
  }

  /// Ends one.
  ///
  /// - Returns: those that may run now, in the order in which they were added.
  func end(_ entry: Entry) -> [Entry] {
    entry.hasEnded = true
    remove(entry, at: root, entry.path.keys.makeIterator())
    let followers = entry.followers.values
    for predecessor in entry.predecessors.values {
      predecessor.followers[ObjectIdentifier(entry)] = nil
    }
    (entry.predecessors, entry.followers, entry.replaced) = ([:], [:], [:])
    for follower in followers { follower.forget(entry) }
    return followers.filter(\.predecessors.isEmpty).sorted { $0.number < $1.number }
  }

  /// How many pairs of one that waits and one that is waited for are looked at to take one out between them.
  private static let pairLimit = 4096

  /// Takes out one that has not begun: those that wait for it wait for what it waited for, as far as they are related.
  ///
  /// - Returns: those that may run now; nil if it stays, since so many stand before and behind it that this would take long.
  func withdraw(_ entry: Entry) -> [Entry]? {
    guard entry.predecessors.count * entry.followers.count <= Self.pairLimit else { return nil }
    let (predecessors, replaced) = (entry.predecessors.values, entry.replaced.values)
    let stands = remove(entry, at: root, entry.path.keys.makeIterator())
    for follower in entry.followers.values {
      let stoodHere = follower.replaced[ObjectIdentifier(entry)] != nil
      for predecessor in predecessors where predecessor.path.isRelated(to: follower.path) {
        follower.wait(for: predecessor)
      }
      if stoodHere { for old in replaced { follower.replaced[ObjectIdentifier(old)] = old } }
    }
    if stands {
      for old in replaced {
        var place = root
        for key in old.path.keys { place = place.child(key) }
        place.stand(old)
      }
    }
    return end(entry)
  }

  /// Removes it from its place, if it still stands there, and the places that are empty then.
  ///
  /// - Returns: whether it stood there.
  @discardableResult
  private func remove(
    _ entry: Entry, at place: Place, _ keys: some IteratorProtocol<Key>
  ) -> Bool {
    var keys = keys
    guard let key = keys.next() else {
      guard place.last === entry else { return false }
      place.last = nil
      return true
    }
    guard let child = place.children[key] else { return false }
    let stood = remove(entry, at: child, keys)
    if child.last == nil, child.children.isEmpty { place.children[key] = nil }
    return stood
  }
}

extension Path {
  /// Whether one of both is at or above the other.
  fileprivate func isRelated(to other: Path) -> Bool {
    isPrefix(of: other) || other.isPrefix(of: self)
  }
}
