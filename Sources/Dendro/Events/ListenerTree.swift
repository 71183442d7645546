package import DendroTree

/// The listeners by path.
///
/// The hub's lock guards it.
package struct ListenerTree {
  /// What listens at one path.
  package final class Place {
    fileprivate let path: Path
    /// The sort orders of the path's children, shared by its listeners and subscriptions.
    fileprivate lazy var orders = OrderRegistry()
    /// The registrations at this path; nil if there is none.
    package fileprivate(set) var syncPoint: SyncPoint?
    /// The asynchronous iterators at this path.
    package fileprivate(set) var subscriptions: InsertionOrder<Subscription>

    fileprivate init(_ path: Path, tally: StepTally) {
      self.path = path
      subscriptions = InsertionOrder(tally: tally)
    }

    fileprivate var isUnused: Bool { syncPoint == nil && subscriptions.isEmpty }
  }

  private let places = PathTrie<Place>()
  private let tally: StepTally

  package init(tally: StepTally = StepTally()) { self.tally = tally }

  /// Whether there is no listener.
  package var isEmpty: Bool { places.isEmpty }

  /// The listeners at exactly this path.
  package func syncPoint(at path: Path) -> SyncPoint? { places[path]?.syncPoint }

  /// Adds a sync point, of which there is at most one for each path.
  package func insert(_ syncPoint: SyncPoint) { place(at: syncPoint.path).syncPoint = syncPoint }

  package func insert(_ subscription: Subscription) {
    place(at: subscription.path).subscriptions.append(subscription)
  }

  /// Removes a sync point if it is there.
  ///
  /// - Complexity: O(length of the path), as for subscriptions.
  package func remove(_ syncPoint: SyncPoint) {
    remove(at: syncPoint.path) { if $0.syncPoint === syncPoint { $0.syncPoint = nil } }
  }

  /// Removes a subscription if it is there.
  package func remove(_ subscription: Subscription) {
    remove(at: subscription.path) { $0.subscriptions.remove(subscription.id) }
  }

  private func remove(at path: Path, _ body: (Place) -> Void) {
    guard let place = places[path] else { return }
    body(place)
    if place.isUnused { places.remove(path) }
  }

  /// The sort orders of the children at this path. Makes the path's place, which a listener then keeps.
  func orders(at path: Path) -> OrderRegistry { place(at: path).orders }

  /// The sort orders of the children at this path; nil if nothing listens there.
  func existingOrders(at path: Path) -> OrderRegistry? { places[path]?.orders }

  private func place(at path: Path) -> Place {
    places.place(at: path) { Place(path, tally: tally) }
  }

  /// Calls `body` with each place above, at and below the changed paths, with the data there, and with the key of
  /// the only child that may have changed, if it is known: descendants before ancestors, siblings in plain string
  /// order.
  ///
  /// - Parameter root: the data at the root, of which only what listeners get is looked up.
  /// - Complexity: as `PathTrie.forEachAffected`.
  package func forEachAffected(
    by path: Path, and others: [Path] = [], root: borrowing Node,
    _ body: (Place, Node, Key?) -> Void
  ) {
    places.forEachAffected(by: path, and: others, in: root) { place, root, changedKey in
      body(place, root.node(at: place.path), changedKey)
    }
  }
}
