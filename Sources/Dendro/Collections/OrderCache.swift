package import DendroTree
import Dispatch
import Synchronization

/// Sort orders that repeated queries ask for, kept for a while: the next query then follows the children that
/// changed since the last one, and does not look at all of them.
///
/// An order is built when it is asked for the second time, since a single query is answered faster by looking
/// at every child once. It is dropped when it was not used for a while, and when others need its room. A
/// declared order is built when it is asked for the first time, and dropped only when it is declared no more.
///
/// Any thread may use it.
package final class OrderCache: Sendable {
  package struct Limits: Sendable {
    /// Children in all orders that are kept. The bytes of long strings count as the children that take as many.
    package var childCount: Int
    /// Orders, also those that were asked for once.
    package var orderCount = 64
    /// How long an order is kept after its last use.
    package var age = Duration.seconds(60)

    package init(childCount: Int) { self.childCount = childCount }
  }

  private struct Place: Hashable {
    let path: Path
    let order: SortOrder
  }

  private struct Entry {
    /// Nil if it was asked for once, and if it is too large.
    var order: SharedOrder?
    /// Children, and what long strings take as so many.
    var weight = 0
    var isTooLarge = false
    var lastUse: ContinuousClock.Instant
  }

  /// About what a child takes in an order.
  private static let childByteCount = 100

  /// An order that queries declare.
  private struct Declared {
    var queries: Set<QueryParameters> = []
    let order: SharedOrder
  }

  private struct State {
    var declared: [Place: Declared] = [:]
    /// Those that are not declared.
    var entries: [Place: Entry] = [:]
    /// Of all entries.
    var weight = 0
    var isSweepScheduled = false
  }

  private let limits: Limits
  private let state = Mutex(State())
  /// What all comparisons are counted in.
  package let tally = ComparisonTally()

  package init(limits: Limits) { self.limits = limits }

  /// The children in all orders that are kept and not declared; long strings count as some.
  package var keptChildCount: Int { state.withLock { $0.weight } }

  /// The order of the children at a path; nil if a query should look at every child.
  ///
  /// - Parameters:
  ///   - childCount: of the children that are to be ordered.
  ///   - longByteCount: the bytes of the long strings by which they are sorted; only for an order that is not
  ///     kept yet.
  ///   - now: the time of the query.
  package func order(
    _ order: SortOrder, at path: Path, childCount: Int, longByteCount: () -> Int = { 0 },
    now: ContinuousClock.Instant = .now
  ) -> SharedOrder? {
    let place = Place(path: path, order: order)
    let (declared, isNew) = state.withLock { state in
      let entry = state.entries[place]
      return (
        state.declared[place]?.order, entry.map { $0.order == nil && !$0.isTooLarge } ?? false
      )
    }
    if let declared { return declared }
    guard childCount <= limits.childCount else { return nil }
    // Counted before the order is built, and without the lock.
    let newByteCount = isNew ? longByteCount() : 0
    var dropped: [SharedOrder] = []
    let (found, schedulesSweep) = state.withLock { state -> (SharedOrder?, Bool) in
      guard var entry = state.entries[place] else {
        state.entries[place] = Entry(lastUse: now)
        makeRoom(&state, keeping: place, &dropped)
        defer { state.isSweepScheduled = true }
        return (nil, !state.isSweepScheduled)
      }
      entry.lastUse = now
      let byteCount = entry.order?.allocatedByteCount ?? newByteCount
      let weight = childCount + byteCount / Self.childByteCount
      if !entry.isTooLarge, weight > limits.childCount {
        entry.isTooLarge = true
        if let order = entry.order { dropped.append(order) }
        entry.order = nil
      }
      if !entry.isTooLarge { entry.order = entry.order ?? SharedOrder(order, tally: tally) }
      let newWeight = entry.isTooLarge ? 0 : weight
      state.weight += newWeight - entry.weight
      entry.weight = newWeight
      state.entries[place] = entry
      makeRoom(&state, keeping: place, &dropped)
      return (entry.order, false)
    }
    if schedulesSweep { scheduleSweep() }
    withExtendedLifetime(dropped) {}  // Freed here, without the lock.
    return found
  }

  /// The order of the children at a path, if it is kept already. Otherwise this does not count as asking.
  package func keptOrder(
    _ order: SortOrder, at path: Path, childCount: Int, now: ContinuousClock.Instant = .now
  ) -> SharedOrder? {
    let place = Place(path: path, order: order)
    let isKept = state.withLock { $0.declared[place] != nil || $0.entries[place]?.order != nil }
    return isKept ? self.order(order, at: path, childCount: childCount, now: now) : nil
  }

  /// Orders that are kept.
  package var orderCount: Int {
    state.withLock { $0.declared.count + $0.entries.values.count { $0.order != nil } }
  }

  // MARK: Declaring

  /// Keeps the order of a query's children, whatever the limits, until the query declares it no more.
  package func declare(_ parameters: QueryParameters, at path: Path) {
    let place = Place(path: path, order: parameters.order)
    let dropped = state.withLock { state -> [SharedOrder] in
      var dropped: [SharedOrder] = []
      if state.declared[place] == nil {
        let kept = state.entries[place]?.order
        drop(place, &state, &dropped)
        state.declared[place] = Declared(order: kept ?? SharedOrder(place.order, tally: tally))
      }
      state.declared[place]?.queries.insert(parameters)
      return dropped
    }
    withExtendedLifetime(dropped) {}  // Freed here, without the lock.
  }

  /// Takes a query's declaration back. An order that no other query declares is dropped.
  package func takeBack(_ parameters: QueryParameters, at path: Path) {
    let place = Place(path: path, order: parameters.order)
    let dropped = state.withLock { state -> SharedOrder? in
      state.declared[place]?.queries.remove(parameters)
      guard let declared = state.declared[place], declared.queries.isEmpty else { return nil }
      state.declared[place] = nil
      return declared.order
    }
    withExtendedLifetime(dropped) {}
  }

  // MARK: Dropping

  /// Drops the orders that were used least recently until the rest is within the limits.
  private func makeRoom(
    _ state: inout State, keeping kept: Place, _ dropped: inout [SharedOrder]
  ) {
    while state.weight > limits.childCount || state.entries.count > limits.orderCount {
      let others = state.entries.filter { $0.key != kept }
      guard let oldest = others.min(by: { $0.value.lastUse < $1.value.lastUse }) else { return }
      drop(oldest.key, &state, &dropped)
    }
  }

  private func drop(_ place: Place, _ state: inout State, _ dropped: inout [SharedOrder]) {
    guard let entry = state.entries.removeValue(forKey: place) else { return }
    state.weight -= entry.weight
    if let order = entry.order { dropped.append(order) }
  }

  /// Drops what was not used for a while before `now`.
  ///
  /// - Returns: whether anything is left.
  @discardableResult
  package func sweep(now: ContinuousClock.Instant = .now) -> Bool {
    var dropped: [SharedOrder] = []
    let isLeft = state.withLock { state in
      for (place, entry) in state.entries where entry.lastUse.duration(to: now) >= limits.age {
        drop(place, &state, &dropped)
      }
      state.isSweepScheduled = !state.entries.isEmpty
      return state.isSweepScheduled
    }
    withExtendedLifetime(dropped) {}
    return isLeft
  }

  private func scheduleSweep() {
    let milliseconds = Int(limits.age / .milliseconds(1))
    Self.sweepQueue.asyncAfter(deadline: .now() + .milliseconds(milliseconds)) { [weak self] in
      guard let self, self.sweep() else { return }
      self.scheduleSweep()
    }
  }

  private static let sweepQueue = DispatchQueue(label: ThreadName.freeing.rawValue)
}
