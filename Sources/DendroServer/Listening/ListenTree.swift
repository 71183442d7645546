import Dendro
import DendroProtocol
import DendroTree

/// The listens of one database by their locations.
struct ListenTree {
  private let places = PathTrie<ListenPlace>()

  // MARK: Changing

  /// What follows when a listen was added.
  enum Addition {
    case begins
    /// It begins when its order is made, which another one waits for already.
    case waits
    /// It begins when its order is made.
    case needs(ListenedOrder)
  }

  /// - Parameter node: at the listen's location now.
  func add(_ listen: Listen, _ node: Node, lsn: UInt64) -> Addition {
    places.place(at: listen.path) { ListenPlace(listen.path) }.add(listen, node, lsn: lsn)
  }

  /// - Returns: whether it was there.
  func remove(_ listen: Listen) -> Bool {
    guard let place = places[listen.path], place.remove(listen) else { return false }
    if place.isUnused { places.remove(listen.path) }
    return true
  }

  /// - Returns: the listens that were there.
  func removeAll() -> [Listen] {
    var listens: [Listen] = []
    places.forEachAffected(by: .root, in: ()) { place, _, _ in listens += place.listens }
    places.removeAll()
    return listens
  }

  // MARK: Passing on

  /// A listen whose value has to be made anew.
  struct Unmade: Sendable {
    let listen: Listen
    /// At its location.
    let node: Node
  }

  /// Passes a commit on to the listens at, above and below its changes.
  ///
  /// - Returns: those that are left: their values have to be made anew.
  func commit(_ commit: CommitChanges, lsn: UInt64) -> [Unmade] {
    var concerned: [(place: ListenPlace, changes: [Change])] = []
    var indices: [ObjectIdentifier: Int] = [:]
    for change in commit.changes {
      var affected: [ListenPlace] = []
      places.forEachAffected(by: change.path, in: ()) { place, _, _ in affected.append(place) }
      // Ancestors first.
      for place in affected.reversed() {
        if let index = indices[ObjectIdentifier(place)] {
          concerned[index].changes.append(change)
        } else {
          indices[ObjectIdentifier(place)] = concerned.count
          concerned.append((place, [change]))
        }
      }
    }
    var unmade: [Unmade] = []
    for (place, changes) in concerned {
      unmade += place.commit(
        CommitChanges(disjoint: changes, isReplacedKnown: commit.isReplacedKnown), lsn: lsn)
    }
    return unmade
  }
}

/// The listens at one location.
private final class ListenPlace {
  let path: Path
  /// To the whole location.
  private var whole: [ObjectIdentifier: Listen] = [:]
  /// To queries.
  private var orders: [SortOrder: ListenedOrder] = [:]

  /// Of orders other than that of the keys, which takes no memory.
  private static let keptOrderCountMax = 16

  init(_ path: Path) { self.path = path }

  var isUnused: Bool { whole.isEmpty && orders.isEmpty }

  var listens: [Listen] { Array(whole.values) + orders.values.flatMap(\.listens) }

  func add(_ listen: Listen, _ node: Node, lsn: UInt64) -> ListenTree.Addition {
    guard let query = listen.query else {
      whole[ObjectIdentifier(listen)] = listen
      return .begins
    }
    if let order = orders[query.order] { return order.add(listen, query) ? .begins : .waits }
    let isKept =
      query.order == .key
      || orders.values.count { $0.isKept && $0.order != .key } < Self.keptOrderCountMax
    let order = ListenedOrder(path, query.order, node, lsn: lsn, isKept: isKept)
    orders[query.order] = order
    return order.add(listen, query) ? .begins : .needs(order)
  }

  func remove(_ listen: Listen) -> Bool {
    guard let query = listen.query else {
      return whole.removeValue(forKey: ObjectIdentifier(listen)) != nil
    }
    guard let order = orders[query.order], order.remove(listen, query) else { return false }
    if order.isUnused { orders[query.order] = nil }
    return true
  }

  func commit(_ commit: CommitChanges, lsn: UInt64) -> [ListenTree.Unmade] {
    if !whole.isEmpty, let change = commit.change(at: path) {
      let update = ListenUpdate(change, lsn: lsn)
      for listen in whole.values { listen.receiver.receive(update) }
    }
    guard var new = orders.values.first?.node else { return [] }
    commit.apply(to: &new, at: path)
    return orders.values.flatMap { order in
      order.advance(to: new, lsn: lsn).map { ListenTree.Unmade(listen: $0, node: new) }
    }
  }
}
