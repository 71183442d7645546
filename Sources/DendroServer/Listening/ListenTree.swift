import Dendro
import DendroProtocol
import DendroTree

/// The listens of one database by their locations.
struct ListenTree {
  private let places = PathTrie<ListenPlace>()

  // MARK: Changing

  /// - Parameter node: at the listen's location now.
  func add(_ listen: Listen, _ node: Node) {
    places.place(at: listen.path) { ListenPlace(listen.path) }.add(listen, node)
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

  /// Passes a commit on to the listens at, above and below its changes.
  func commit(_ commit: CommitChanges, lsn: UInt64) {
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
    for (place, changes) in concerned {
      place.commit(CommitChanges(disjoint: changes), lsn: lsn)
    }
  }

  /// Passes on that the whole tree is this now.
  func replace(_ node: Node, lsn: UInt64) {
    places.forEachAffected(by: .root, in: node) { place, node, _ in
      place.replace(node.node(at: place.path), lsn: lsn)
    }
  }
}

/// The listens at one location.
private final class ListenPlace {
  let path: Path
  /// To the whole location.
  private var whole: [ObjectIdentifier: Listen] = [:]
  /// By their queries.
  private var windows: [QueryParameters: [ObjectIdentifier: Listen]] = [:]
  /// The state of the queries' windows; nil without queries.
  private var state: WindowState?

  private struct WindowState {
    var node: Node
    var generator = EventGenerator()
  }

  init(_ path: Path) { self.path = path }

  var isUnused: Bool { whole.isEmpty && windows.isEmpty }

  var listens: [Listen] { Array(whole.values) + windows.values.flatMap(\.values) }

  func add(_ listen: Listen, _ node: Node) {
    guard let query = listen.query else {
      whole[ObjectIdentifier(listen)] = listen
      return
    }
    windows[query, default: [:]][ObjectIdentifier(listen)] = listen
    if state == nil { state = WindowState(node: node) }
  }

  func remove(_ listen: Listen) -> Bool {
    guard let query = listen.query else {
      return whole.removeValue(forKey: ObjectIdentifier(listen)) != nil
    }
    guard windows[query]?.removeValue(forKey: ObjectIdentifier(listen)) != nil else { return false }
    if windows[query]?.isEmpty == true {
      windows[query] = nil
      let isOrderUsed = windows.keys.contains { $0.order == query.order }
      state?.generator.discard(
        EventGenerator.Unneeded(windows: [query], orders: isOrderUsed ? [] : [query.order]))
    }
    if windows.isEmpty { state = nil }
    return true
  }

  func commit(_ commit: CommitChanges, lsn: UInt64) {
    if !whole.isEmpty, let change = commit.change(at: path) {
      let update = ListenUpdate(change, lsn: lsn)
      for listen in whole.values { listen.receiver.receive(update) }
    }
    guard var new = state?.node else { return }
    commit.apply(to: &new, at: path)
    advance(to: new, lsn: lsn)
  }

  func replace(_ node: Node, lsn: UInt64) {
    if !whole.isEmpty {
      let update = ListenUpdate(.put(.root, node), lsn: lsn)
      for listen in whole.values { listen.receiver.receive(update) }
    }
    advance(to: node, lsn: lsn)
  }

  /// Passes on what changes in the windows.
  private func advance(to new: Node, lsn: UInt64) {
    guard let old = state?.node else { return }
    let queries = Array(windows.keys)
    let requests = queries.map {
      EventGenerator.Request($0, [.added, .removed, .changed, .moved])
    }
    let events = state?.generator.events(from: old, to: new, for: requests) ?? []
    state?.node = new
    for (query, events) in zip(queries, events) {
      var nodes: [Key: Node] = [:]
      for event in events {
        guard let key = event.key else { continue }
        nodes[key] = event.type == .childRemoved ? .empty : event.node
      }
      let parts = nodes.sorted { $0.key < $1.key }.map { (Path(keys: [$0.key]), $0.value) }
      guard let change = PlaceChange(parts) else { continue }
      let update = ListenUpdate(change, lsn: lsn)
      for listen in windows[query, default: [:]].values { listen.receiver.receive(update) }
    }
  }
}
